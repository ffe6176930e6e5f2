#ifndef SIPHON_LAUNCH_DATA_DATASET_H_
#define SIPHON_LAUNCH_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/model_spec.h"
#include "planner/tensor_spec.h"

namespace siphon {

// A new kind of data: one file with its two functions (launch/data/sources.h) and one line in
// datasets.def.

enum class Split { kTrain, kValidation };

// Samples as bytes, read by number. Reading is deterministic and may be done from several threads.
struct Dataset {
  TensorSpec input;   // one sample
  TensorSpec target;  // one sample, I64
  int64_t training_samples = 0;
  int64_t validation_samples = 0;
  std::string fingerprint;  // changes when the data does; stands in checkpoints
  // Fills one sample. `key` decides what is random in it (masked positions). The spans have the
  // sizes of `input` and `target` and start at a multiple of 8 bytes. Errors: InvalidArgument for a
  // sample that is not there, spans of other sizes, or, tokens only, an id that the model does not
  // have (the file was changed under us).
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

// The kinds of datasets.def.
std::vector<std::string> KnownDataKinds();

// Number of different ids that the data needs by itself: 256 for text, the largest id + 1 for
// tokens, 0 for synthetic (it takes whatever the model has). A masked objective needs one more, the
// mask id. Errors: NotFound for an unknown kind, and as OpenDataset. Complexity: tokens are all
// read once.
absl::StatusOr<int64_t> DataVocabulary(const DatasetOptions& options);

// Opens the data for a model: next-token pairs, masked positions (15 %, at least one a sample; of
// them 80 % mask id, 10 % random, 10 % unchanged; the mask id is DataVocabulary, that is 256 for
// bytes, and classes - 1 for synthetic data), or, synthetic only, images or vectors of the model's
// input type with labels that can be learnt. The last validation_fraction of the samples, at least
// one, validate.
//
// Errors: NotFound when a file is missing or the kind unknown; InvalidArgument when a file is
// empty, is not what it should be, or has less than one sequence in either split (says how many
// bytes or tokens there are and how many are needed), when the model has fewer classes than the
// data has ids, or takes another kind of input. Complexity: as DataVocabulary.
absl::StatusOr<Dataset> OpenDataset(const DatasetOptions& options, const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_DATA_DATASET_H_
