#ifndef SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_
#define SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launch/checkpoint/checkpoint_info.h"
#include "launch/checkpoint/file_operations.h"
#include "launch/checkpoint/safetensors.h"
#include "planner/tensor_spec.h"

namespace siphon {

// A directory a checkpoint, "<directory>/step-00000120", complete or absent:
//   siphon.json                      CheckpointInfo; each file's size, and each tensor's file,
//   shape and checksum (XXH3) model-00001-of-00004.safetensors one a worker: parameters under their
//   Hugging Face names and layouts model.safetensors.index.json     Hugging Face's index
//   optimizer-00001-of-00004.safetensors  moments as "<parameter>.exp_avg",
//   "<parameter>.exp_avg_sq"
// Written under ".step-00000120.partial", fsynced, then renamed by worker 0. A worker without
// parameters or moments writes no file for them. A crash at any moment leaves the earlier
// checkpoints as they were, and at most a hidden directory that readers ignore and the next save
// removes.

struct CheckpointTensor {
  std::string name;        // as in the file
  bool optimizer = false;  // a moment, not a parameter
  // Files hold float32; one of 16 bits is read from it, rounded (RoundFloats), and never written.
  TensorSpec spec;
  absl::Span<std::byte> bytes;
  // Null: they are there. Otherwise what gives them, each time they are read or written, for as
  // long as no other tensor's are asked for.
  std::function<absl::StatusOr<absl::Span<std::byte>>()> bring = nullptr;
};
// Errors: as of `bring`.
absl::StatusOr<absl::Span<std::byte>> MemoryOf(const CheckpointTensor& tensor);
// What a file has to hold for the tensor.
TensorSpec StoredSpec(const CheckpointTensor& tensor);

// Errors of all four: ResourceExhausted when the disk is full, with path and bytes; InvalidArgument
// for a directory that may not be written; Internal for other I/O failures. After an error of any
// worker, worker 0 calls AbandonCheckpoint.

// Worker 0, first: makes the partial directory (removing what interrupted saves left there).
// Returns its path.
absl::StatusOr<std::string> BeginCheckpoint(const std::string& directory, int64_t step,
                                            const FileOperations& files = SystemFiles());
// Every worker: writes its tensors, each tensor of the model by one worker only (a tied parameter
// by its owner). Returns the JSON fragment that worker 0 needs of it (files, names, checksums).
absl::StatusOr<std::string> WriteCheckpointShard(const std::string& partial, int worker,
                                                 int workers,
                                                 const std::vector<CheckpointTensor>& tensors,
                                                 const FileOperations& files = SystemFiles());
// Worker 0, last: writes index and sidecar, opens all once more, renames (an earlier checkpoint of
// the same step is replaced), then deletes the oldest checkpoints beyond `keep` (0: keeps all;
// never the one just written nor one that is being read). What cannot be deleted is a warning in
// the log. Returns the final path.
absl::StatusOr<std::string> FinishCheckpoint(const std::string& partial, const CheckpointInfo& info,
                                             const std::vector<std::string>& shards, int64_t keep,
                                             const FileOperations& files = SystemFiles());
// Worker 0, instead: removes the partial directory.
void AbandonCheckpoint(const std::string& partial, const FileOperations& files = SystemFiles());

// An opened checkpoint: sidecar, index and the headers of all files read and held against each
// other. While the object lives, no save deletes the checkpoint. Errors of Open and Read: NotFound;
// InvalidArgument naming the file and the tensor at fault, and what is wrong with it (truncated,
// edited: checksum differs, foreign: no siphon.json, a tensor missing or of another shape).
class Checkpoint {
 public:
  static absl::StatusOr<Checkpoint> Open(const std::string& path);
  const CheckpointInfo& info() const { return info_; }
  const std::string& path() const { return path_; }
  // Copies each tensor out of the files, whichever worker had written it, and verifies its
  // checksum. Tensors that are not asked for are not read; one that is asked for twice (a tied
  // copy) is copied twice. After an error the destinations hold undefined bytes.
  absl::Status Read(const std::vector<CheckpointTensor>& tensors) const;
  // For people: step, what wrote it, and files with their sizes; several lines.
  std::string Describe() const;

 private:
  struct Entry {
    int file = 0;
    int tensor = 0;
    uint64_t checksum = 0;
  };
  // Parameters are told from moments: a user's parameter may be called "a.exp_avg" beside "a".
  using Key = std::pair<bool, std::string>;  // (optimizer, name)

  absl::Status OpenFiles(const struct CheckpointContents& contents);
  absl::Status ReadOne(const CheckpointTensor& wanted) const;
  absl::Status ReadVerified(const Entry& entry, const std::string& place,
                            absl::Span<std::byte> bytes) const;

  std::string path_;
  std::shared_ptr<const void> hold_;  // shared by copies of this object
  CheckpointInfo info_;
  std::vector<SafetensorsFile> files_;
  std::map<Key, Entry> entries_;
};

// The complete checkpoint that was written last into the directory. Partial ones are skipped.
// Errors: NotFound when there is none; InvalidArgument when the sidecar of one with a later step
// cannot be read.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& directory);

// Initial weights of a model (`model.init_from`): a safetensors file, or a folder with a checkpoint
// of ours, with Hugging Face's index, or with one model.safetensors. Only parameters are read.
// Where a file was saved from the model without its head, names lack their first part
// ("h.0.ln_1.weight" for "transformer.h.0.ln_1.weight"), and are found without it. Errors: as for
// Checkpoint.
absl::Status ReadInitialWeights(const std::string& path,
                                const std::vector<CheckpointTensor>& parameters);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_H_
