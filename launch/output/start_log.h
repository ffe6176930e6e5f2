#ifndef SIPHON_LAUNCH_OUTPUT_START_LOG_H_
#define SIPHON_LAUNCH_OUTPUT_START_LOG_H_

#include <string>

namespace siphon {

// Sends the log to standard error (standard output is for results) with `who` before each line.
// `level` is output.log_level: trace, debug, info, warning, error.
void StartLog(const std::string& who, const std::string& level);

// One line of it. (spdlog's own header and LibTorch's do not go into one file: each brings a fmt.)
void LogWarning(const std::string& text);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_START_LOG_H_
