#include "launch/run/check_places.h"

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

// The last part of `path` that exists; the working directory if none does.
fs::path ExistingPart(fs::path path) {
  while (!path.empty()) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() != fs::file_type::not_found) return path;
    const fs::path parent = path.parent_path();
    if (parent == path) break;
    path = parent;
  }
  return ".";
}

absl::Status CheckPlace(const JobConfig& job, const std::string& key, const std::string& path) {
  const fs::path existing = ExistingPart(path);
  const std::string named =
      existing == fs::path(path) ? "it" : absl::StrCat("'", existing.string(), "'");
  std::error_code error;
  if (!fs::is_directory(existing, error)) {
    return ConfigError(job, key,
                       absl::StrCat("'", path, "' cannot be a directory: ", named,
                                    " is not one; write another path"));
  }
  if (access(existing.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return ConfigError(job, key,
                     absl::StrCat("'", path, "' cannot be written: ", named, ": ",
                                  std::strerror(errno), "; write another path"));
}

}  // namespace

absl::Status CheckPlaces(const JobConfig& job) {
  SIPHON_RETURN_IF_ERROR(CheckPlace(job, "output.directory", job.output.directory));
  if (!job.memory.nvme_directory.empty()) {
    SIPHON_RETURN_IF_ERROR(CheckPlace(job, "memory.nvme_directory", job.memory.nvme_directory));
  }
  if (job.checkpoint.directory.empty()) return absl::OkStatus();
  return CheckPlace(job, "checkpoint.directory", job.checkpoint.directory);
}

}  // namespace siphon
