#ifndef SIPHON_TESTS_BENCH_MACHINE_NAME_H_
#define SIPHON_TESTS_BENCH_MACHINE_NAME_H_

#include <fstream>
#include <string>

#include "absl/strings/match.h"

namespace siphon {

// The processor, as Linux names it.
inline std::string MachineName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown machine";
}

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_MACHINE_NAME_H_
