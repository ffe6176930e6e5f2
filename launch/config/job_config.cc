#include "launch/config/job_config.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siphon {

absl::Status ConfigError(const JobConfig& job, absl::string_view key, absl::string_view problem) {
  const auto found = job.origins.find(std::string(key));
  const std::string origin = found == job.origins.end() ? "default" : found->second;
  if (absl::StartsWith(origin, "--set ")) {  // names the key
    return absl::InvalidArgumentError(absl::StrCat(origin, ": ", problem));
  }
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", key, ": ", problem));
}

}  // namespace siphon
