#include "launch/run/hold_places.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/checkpoint/checkpoint_directory.h"
#include "launch/checkpoint/file_operations.h"
#include "launch/run/seat/training_state.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::StatusOr<std::shared_ptr<const void>> HoldPlace(const JobConfig& job, const std::string& key,
                                                      const std::string& path) {
  SIPHON_RETURN_IF_ERROR(MakeDirectories(path, SystemFiles()));
  SIPHON_ASSIGN_OR_RETURN(std::shared_ptr<const void> held, HoldAlone(path));
  if (held != nullptr) return held;
  return ConfigError(job, key,
                     absl::StrCat("another run that has not ended writes into '", path,
                                  "'; wait for it, or write another path"));
}

}  // namespace

absl::StatusOr<HeldPlaces> HoldPlaces(const JobConfig& job) {
  const std::string& output = job.output.directory;
  const std::string checkpoints = CheckpointDirectory(job);
  HeldPlaces held;
  SIPHON_ASSIGN_OR_RETURN(std::shared_ptr<const void> first,
                          HoldPlace(job, "output.directory", output));
  held.push_back(std::move(first));
  std::error_code differs;  // or is not there
  if (std::filesystem::equivalent(output, checkpoints, differs)) return held;
  SIPHON_ASSIGN_OR_RETURN(
      std::shared_ptr<const void> second,
      HoldPlace(job, job.checkpoint.directory.empty() ? "output.directory" : "checkpoint.directory",
                checkpoints));
  held.push_back(std::move(second));
  return held;
}

}  // namespace siphon
