#ifndef SIPHON_LAUNCH_CONFIG_JOB_SCHEMA_H_
#define SIPHON_LAUNCH_CONFIG_JOB_SCHEMA_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/config/config_tree.h"
#include "launch/config/job_config.h"
#include "launch/config/load_job_config.h"

namespace siphon {

// One key of the job file: all that parsing, writing and the help text know of it.
struct JobKey {
  std::string section;
  std::string key;
  std::string meaning;
  bool is_text = false;  // an override's value is taken as it is
  // What may stand there, in words: "whole number, at least 1".
  std::function<std::string(const KnownNames& known)> values;
  // Sets the member from a node. Errors: InvalidArgument without the place.
  std::function<absl::Status(const ConfigNode& node, const KnownNames& known, JobConfig& job)> read;
  // The member as YAML; empty when it has no value.
  std::function<std::string(const JobConfig& job)> write;
};

// The table of all keys, section by section in the order of JobConfig's members.
const std::vector<JobKey>& JobSchema();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_JOB_SCHEMA_H_
