#include "launch/config/job_config.h"

#include "absl/strings/str_cat.h"

namespace siphon {

absl::Status ConfigError(const JobConfig& job, absl::string_view key, absl::string_view problem) {
  const auto origin = job.origins.find(std::string(key));
  return absl::InvalidArgumentError(
      absl::StrCat(origin == job.origins.end() ? absl::string_view("default") : origin->second,
                   ": ", key, ": ", problem));
}

}  // namespace siphon
