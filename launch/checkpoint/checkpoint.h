#ifndef SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_
#define SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/checkpoint/safetensors.h"
#include "planner/tensor_spec.h"

namespace siphon {

// The scalars of a checkpoint (siphon.json). Random state is all in `seed` and `step`: every draw is keyed.
struct CheckpointInfo {
  int64_t step = 0;              // training steps done
  int64_t samples_consumed = 0;  // data position
  int64_t seed = 0;
  int64_t threads_per_worker = 1;
  std::string optimizer;
  std::string accumulation_order = "ascending";  // of microbatches
  std::string data_fingerprint;
  std::string tokenizer;
  std::string model_json;  // model kind and options, enough for `siphon generate`
  std::string plan_text;
};

// A directory a checkpoint, "<directory>/step-00000120", complete or absent:
//   siphon.json                      CheckpointInfo, and for each tensor its file and a 64-bit checksum (XXH3)
//   model-00001-of-00004.safetensors one a worker: parameters under their Hugging Face names and layouts
//   model.safetensors.index.json     Hugging Face's index
//   optimizer-00001-of-00004.safetensors  moments as "<parameter>.exp_avg", "<parameter>.exp_avg_sq"
// Written under ".step-00000120.partial", fsynced, then renamed by worker 0.

struct CheckpointTensor {
  std::string name;       // as in the file
  bool optimizer = false;  // a moment, not a parameter
  TensorSpec spec;
  absl::Span<std::byte> bytes;
};

// Worker 0, first: makes the partial directory (removing what an interrupted save left there). Returns its path.
absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step);
// Every worker: writes its tensors. Returns the JSON fragment that worker 0 needs of it (files, names, checksums).
absl::StatusOr<std::string> WriteCheckpointShard(const std::string& partial, int worker, int workers,
                                                 const std::vector<CheckpointTensor>& tensors);
// Worker 0, last: writes index and sidecar, renames, then deletes the oldest checkpoints beyond `keep` (0: keeps all; never
// the one just written). Returns the final path.
absl::StatusOr<std::string> FinishCheckpoint(const std::string& partial, const CheckpointInfo& info,
                                             const std::vector<std::string>& shards, int64_t keep);
// Worker 0, instead: removes the partial directory.
void AbandonCheckpoint(const std::string& partial);

// An opened checkpoint: sidecar and the headers of all files read and held against each other.
// Errors of Open and Read: NotFound; InvalidArgument naming the file and the tensor at fault, and what is wrong with it
// (truncated, edited: checksum differs, foreign: no siphon.json, a tensor missing or of another shape).
class Checkpoint {
 public:
  static absl::StatusOr<Checkpoint> Open(const std::string& path);
  const CheckpointInfo& info() const { return info_; }
  const std::string& path() const { return path_; }
  // Copies each tensor out of the files, whichever worker had written it, and verifies its checksum.
  absl::Status Read(const std::vector<CheckpointTensor>& tensors) const;

 private:
  struct Entry {
    int file = 0;
    int tensor = 0;
    uint64_t checksum = 0;
  };
  std::string path_;
  CheckpointInfo info_;
  std::vector<std::string> file_names_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::pair<std::string, Entry>> entries_;  // sorted by tensor name
};

// The newest complete checkpoint of the directory, or NotFound. Partial ones are skipped.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& directory);

// Initial weights of a model (`model.init_from`): a safetensors file, or a folder with Hugging Face's index or one
// model.safetensors. Only parameters are read; errors as for Checkpoint.
absl::Status ReadInitialWeights(const std::string& path, const std::vector<CheckpointTensor>& parameters);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_
