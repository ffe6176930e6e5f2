#ifndef SIPHON_LAUNCH_PROCESS_MACHINE_MEMORY_H_
#define SIPHON_LAUNCH_PROCESS_MACHINE_MEMORY_H_

#include "planner/units.h"

namespace siphon {

// Memory of this machine, or what its container may have of it.
Bytes MachineMemory();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_MACHINE_MEMORY_H_
