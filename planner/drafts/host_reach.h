#ifndef SIPHON_PLANNER_DRAFTS_HOST_REACH_H_
#define SIPHON_PLANNER_DRAFTS_HOST_REACH_H_

#include <vector>

#include "planner/drafts/planning_problem.h"

namespace siphon {

// [worker]: bytes that it can send to the host and take back in each slot of the steady state, in
// which the workers that share its uplink do the same. 0 where there is no host.
std::vector<Bytes> HiddenHostBytes(const PlanningProblem& problem, const DeviceMapping& mapping,
                                   Nanos slot);

// Whether every worker can copy to the host.
bool ReachesHost(const PlanningProblem& problem, const DeviceMapping& mapping);

// Whether optimizer steps can be on the host: their time there is known, and every worker reaches
// it.
bool HostMayStep(const PlanningProblem& problem, const DeviceMapping& mapping);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_HOST_REACH_H_
