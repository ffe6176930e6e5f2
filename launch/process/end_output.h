#ifndef SIPHON_LAUNCH_PROCESS_END_OUTPUT_H_
#define SIPHON_LAUNCH_PROCESS_END_OUTPUT_H_

#include <cstdio>

namespace siphon {

// A program's last call: hands on what was printed to `output`. Returns `code`, or kExitFailure in
// place of kExitDone and kExitStopped, after a line on standard error, where not all of it could be
// written (a full disk).
int EndOutput(int code, std::FILE* output = stdout);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_END_OUTPUT_H_
