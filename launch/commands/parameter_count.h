#ifndef SIPHON_LAUNCH_COMMANDS_PARAMETER_COUNT_H_
#define SIPHON_LAUNCH_COMMANDS_PARAMETER_COUNT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace siphon {

// "0.221 million parameters", "25.5 billion parameters".
inline std::string ParameterCountText(int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 999.5e6 ? absl::StrFormat("%.3g million parameters", count / 1e6)
                         : absl::StrFormat("%.3g billion parameters", count / 1e9);
}

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PARAMETER_COUNT_H_
