#ifndef SIPHON_PLANNER_PERFORMANCE_HOST_ADAM_H_
#define SIPHON_PLANNER_PERFORMANCE_HOST_ADAM_H_

#include "planner/memory/published_formula.h"
#include "planner/model_profile.h"
#include "planner/units.h"

namespace siphon {

// A step of the optimizer of all the profile's parameters on a server's host. Adam takes 0.22 s for
// a billion parameters (Ren et al., "ZeRO-Offload", USENIX ATC 2021, the latency of CPU-Adam);
// other optimizers and hosts ASSUMED alike. `bytes` are those of one parameter in the profile.
Nanos HostAdamTime(const ModelProfile& profile, const ParameterBytes& bytes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_HOST_ADAM_H_
