#ifndef SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_
#define SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"

namespace siphon {

// Reads a job file, strictly, then applies "section.key=value" overrides, then checks what one file can tell by itself
// (ranges, divisibility, values that are known but not built yet).
//
// Errors: NotFound when the file is missing; InvalidArgument otherwise, always "<file>:<line>:<column>: <section.key>:
// <what is wrong>; <what would be right>", with the nearest known name for a misspelt one.
absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path, const std::vector<std::string>& overrides);
// The same from text; `name` stands for the file in messages.
absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& name,
                                         const std::vector<std::string>& overrides);

// All sections and keys with type, unit, default and meaning, for `siphon train --help`.
std::string JobConfigHelp();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_
