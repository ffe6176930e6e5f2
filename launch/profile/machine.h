#ifndef SIPHON_LAUNCH_PROFILE_MACHINE_H_
#define SIPHON_LAUNCH_PROFILE_MACHINE_H_

#include <string>

#include "planner/simulator/simulate.h"

namespace siphon {

// The processor's name as the system has it, or "this machine".
std::string ProcessorName();

// "AMD EPYC, 2 threads".
std::string NameWithThreads(int threads);

// What a message between two workers of this machine takes: the latency from one thread's store to
// another's waking up, and the rate of a copy of `message` into memory that both share, or out of
// it; and the rate at which a core copies large tensors, from memory to memory. Medians of short
// runs, some dozens of milliseconds in all.
TransportCosts MeasureHandover(Bytes message);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_MACHINE_H_
