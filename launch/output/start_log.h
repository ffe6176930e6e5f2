#ifndef SIPHON_LAUNCH_OUTPUT_START_LOG_H_
#define SIPHON_LAUNCH_OUTPUT_START_LOG_H_

#include <string>

namespace siphon {

// Sends the log to standard error (standard output is for results) with `who` before each line.
// `level` is output.log_level: trace, debug, info, warning, error.
void StartLog(const std::string& who, const std::string& level);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_START_LOG_H_
