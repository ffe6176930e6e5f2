#ifndef SIPHON_LAUNCH_PROCESS_PROCESS_PROBE_H_
#define SIPHON_LAUNCH_PROCESS_PROCESS_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace siphon {

// A process that cannot be mistaken for a later one with the same pid.
struct ProcessId {
  int64_t pid = 0;
  int64_t start_ticks = 0;  // since boot; 0: not known
};

ProcessId ThisProcess();

// False once the process has ended, a zombie included.
bool IsRunning(const ProcessId& process);

// SIGKILL, if it is still the same process.
void Kill(const ProcessId& process);

// Living processes whose environment has `entry` ("NAME=value"), the caller excepted. Only those
// that may be looked into.
std::vector<ProcessId> ProcessesWithEnvironment(absl::string_view entry);

// "signal 9 (Killed)".
std::string DescribeSignal(int signal);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_PROCESS_PROBE_H_
