#ifndef SIPHON_LAUNCH_DATA_DATASET_H_
#define SIPHON_LAUNCH_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/model_spec.h"
#include "planner/tensor_spec.h"

namespace siphon {

enum class Split { kTrain, kValidation };

// Samples as bytes, read by number. Reading is deterministic and may be done from several threads.
struct Dataset {
  TensorSpec input;   // one sample
  TensorSpec target;  // one sample, I64
  int64_t training_samples = 0;
  int64_t validation_samples = 0;
  std::string fingerprint;  // changes when the data does; stands in checkpoints
  // Fills one sample. `key` decides what is random in it (masked positions).
  std::function<absl::Status(Split split, int64_t sample, uint64_t key, absl::Span<std::byte> input,
                             absl::Span<std::byte> target)>
      read;
};

struct DatasetOptions {
  std::string kind = "text";  // a key of datasets.def: text, tokens, synthetic
  std::string path;
  int64_t sequence_length = 128;
  double validation_fraction = 0.05;
  int64_t samples = 1024;  // synthetic
  uint64_t seed = 1;       // synthetic
};

// Number of different ids that the data needs by itself: 256 for text, the largest id + 1 for tokens, 0 for synthetic (it
// takes whatever the model has). Errors: NotFound, InvalidArgument as OpenDataset.
absl::StatusOr<int64_t> DataVocabulary(const DatasetOptions& options);

// Opens the data for a model: next-token pairs, masked positions (15 %, of them 80 % mask id, 10 % random, 10 % unchanged;
// the mask id is data vocabulary, that is 256 for bytes), or, synthetic only, images or vectors of the model's input type
// with labels that can be learnt.
// Errors: NotFound when a file is missing; InvalidArgument when it is empty, is not what it should be, or has less than
// one sequence in either split (says how many bytes or tokens there are and how many are needed).
absl::StatusOr<Dataset> OpenDataset(const DatasetOptions& options, const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_DATASET_H_
