#ifndef SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/checkpoint/file_operations.h"

namespace siphon {

// What stands in a directory of checkpoints, and how names in it change. Names of step 120:
//   step-00000120             a complete checkpoint
//   .step-00000120.partial    one being written, or what an interrupted save left
//   .step-00000120.replaced   the earlier one of that step, for the moment between two renames
//   .step-00000120.removed    one being deleted
std::string CheckpointName(int64_t step);
std::string PartialPath(const std::string& directory, int64_t step);

struct StoredCheckpoint {
  int64_t step = 0;
  std::string path;
  // Of its sidecar: the highest is the newest. Steps do not tell: a run started afresh in the same
  // directory has lower ones.
  absl::StatusOr<int64_t> sequence = int64_t{0};
};

// All complete checkpoints, oldest first; those with an unreadable sidecar come before all others.
// Errors: NotFound when there is no such directory.
absl::StatusOr<std::vector<StoredCheckpoint>> ListCheckpoints(const std::string& directory);

// Removes what interrupted saves and deletions left, and gives a replaced checkpoint its name back
// if the new one never arrived. Errors: those of file operations; what can be cleaned is.
absl::Status CleanCheckpointDirectory(const std::string& directory, const FileOperations& files);

// Gives a finished partial directory its final name, in the place of an earlier checkpoint of the
// same step if there is one. At every moment one of the two is complete in the directory. Returns
// the final path. Errors: InvalidArgument when something else than a checkpoint has that name;
// those of file operations.
absl::StatusOr<std::string> PublishCheckpoint(const std::string& partial,
                                              const FileOperations& files);

// Deletes the oldest checkpoints beyond `keep` (0: none), but neither `newest` nor one that is
// being read nor one that it cannot read.
absl::Status PruneCheckpoints(const std::string& directory, const std::string& newest, int64_t keep,
                              const FileOperations& files);

// A hold on a checkpoint's directory: shared by readers, exclusive for who deletes it; null when
// the other kind holds it. Errors: NotFound.
absl::StatusOr<std::shared_ptr<const void>> HoldForReading(const std::string& path);
// Of any directory, for who writes into it and wants nobody else to; null when somebody holds it.
absl::StatusOr<std::shared_ptr<const void>> HoldAlone(const std::string& path);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
