#ifndef SIPHON_LAUNCH_CONFIG_READ_SCHEDULE_FILE_H_
#define SIPHON_LAUNCH_CONFIG_READ_SCHEDULE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"

namespace siphon {

// The text of `pipeline.schedule_file`; empty where pipeline.schedule is not csv. Errors:
// InvalidArgument at the key for a file that cannot be read or is larger than any schedule.
absl::StatusOr<std::string> ReadScheduleFile(const JobConfig& job);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_CONFIG_READ_SCHEDULE_FILE_H_
