#ifndef SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_
#define SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"

namespace siphon {

// What a job file is read for: to be run here, or only to be planned and looked at. The latter
// takes every published value.
enum class JobPurpose { kRun, kStudy };

// Names that stand in registries of other folders; the caller, who may include them, passes them.
// A name of none of them is refused with these listed. An empty list accepts every name.
struct KnownNames {
  std::vector<std::string> schedules;
  std::vector<std::string> partition_methods;
  std::vector<std::string> model_kinds;
  std::vector<std::string> data_kinds;
  std::vector<std::string> optimizers;
  std::vector<std::string> memory_strategies;
  JobPurpose purpose = JobPurpose::kRun;
  // Why no job runs on CUDA devices here, in one line, or nothing where it does; asked only for a
  // job that wants to. Null: it is not asked.
  std::string (*why_no_cuda)() = nullptr;
};

// What a job is held against besides itself.
struct ConfigLimits {
  KnownNames known;
  Bytes machine_memory;  // memory.capacity of CPU workers may not exceed it; 0: not checked
};

// Reads a job file, strictly, then applies "section.key=value" overrides (the last one of a key
// wins; their values are YAML, a text key's is taken as it is), then checks what one file can tell
// by itself (CheckJobConfig).
//
// Errors: NotFound when the file is missing; InvalidArgument otherwise, always
// "<file>:<line>:<column>: <section.key>: <what is wrong>; <what would be right>" ("--set
// section.key" as the place of an override), with the nearest known name for a misspelt one.
absl::StatusOr<JobConfig> LoadJobConfig(const std::string& path,
                                        const std::vector<std::string>& overrides,
                                        const ConfigLimits& limits = {});
// The same from text; `name` stands for the file in messages.
absl::StatusOr<JobConfig> ParseJobConfig(const std::string& text, const std::string& name,
                                         const std::vector<std::string>& overrides,
                                         const ConfigLimits& limits = {});

// A job that has run, here or elsewhere (WriteJobConfig of then), to be looked at: devices that it
// ran on may not be there. `name` as above.
absl::StatusOr<JobConfig> ParsePastJob(const std::string& text, const std::string& name);

// The job in effect as YAML with every key that has a value, which parses back to an equal
// JobConfig.
std::string WriteJobConfig(const JobConfig& job);

// All sections and keys with type, range, default and meaning, for `siphon train --help`. Known
// names are listed where they are given.
std::string JobConfigHelp(const KnownNames& known = {});

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_LOAD_JOB_CONFIG_H_
