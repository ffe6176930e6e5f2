#ifndef SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_COMMAND_H_
#define SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_COMMAND_H_

#include "launch/run/command_line.h"

namespace siphon {

// siphon profile: measures the layers of a job and writes a profile file. Returns the exit code.
int ProfileCommand(const ProfileArguments& arguments);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_LAYER_PROFILE_PROFILE_COMMAND_H_
