#ifndef SIPHON_LAUNCH_PROCESS_LAUNCHER_OUTPUT_H_
#define SIPHON_LAUNCH_PROCESS_LAUNCHER_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "planner/units.h"

namespace siphon {

// That so many bytes more can be written to the file at `path`, of which it reserves the room:
// where this process prints them into a pipe, and whoever reads that (mpirun) does not say that its
// disk is full. Nothing of a pipe, a socket or a file system that cannot reserve. Errors: Internal
// "standard output could not be written: No space left on device".
absl::Status ReserveOutput(const std::string& path, Bytes bytes);

// The standard output of the process that started this one.
std::string LauncherOutputPath();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_LAUNCHER_OUTPUT_H_
