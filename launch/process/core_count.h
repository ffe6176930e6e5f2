#ifndef SIPHON_LAUNCH_PROCESS_CORE_COUNT_H_
#define SIPHON_LAUNCH_PROCESS_CORE_COUNT_H_

namespace siphon {

// Cores that this process may run on, at least one.
int CoreCount();

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_CORE_COUNT_H_
