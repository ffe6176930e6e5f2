#ifndef SIPHON_LAUNCH_GENERATE_COMMAND_H_
#define SIPHON_LAUNCH_GENERATE_COMMAND_H_

#include "launch/run/command_line.h"

namespace siphon {

// `siphon generate`: prints prompt and continuation as it is made, or one JSON object at the end.
// Returns the exit code.
int GenerateCommand(const GenerateArguments& arguments);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_GENERATE_COMMAND_H_
