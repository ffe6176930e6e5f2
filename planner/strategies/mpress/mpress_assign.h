#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_ASSIGN_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_ASSIGN_H_

#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

// What the first assignment is made from.
struct MpressFacts {
  std::vector<std::vector<Nanos>> live_intervals;  // [stage][group]
  Nanos slot;                                      // between two microbatches in the steady state
};

// MPress's first assignment (section III.D): all activations of the workers that `saves[worker]`
// names go to the host or are recomputed, whichever adds less by MpressChoice, and their stashed
// weight versions, which nothing computes again, to the host; lenders come later.
// The longest live intervals are served first. Devices of one PCIe switch share its uplink: what
// they swap for one microbatch must pass within one slot, and copies that no longer do are not
// hidden at all. (The paper compares each tensor alone and lets its emulator find out; ours would
// have to undo nearly all of it.) So later layers are recomputed, earlier ones swapped.
// Requires: facts.live_intervals has an entry for each group of `plan`.
MemoryPlan AssignWithoutPeers(const PlanningProblem& problem, const DeviceMapping& mapping,
                              MemoryPlan plan, const MpressFacts& facts,
                              const std::vector<bool>& saves);

// Sends optimizer state of the worker's stages to the host, the last layers first, until `bytes`
// are saved or none is left. Returns what is saved.
Bytes SendOptimizerToHost(const Schedule& schedule, WorkerId worker, Bytes bytes, MemoryPlan& plan);

// Recomputes up to `most` groups of the worker's activations that were to go to the host, the last
// layers first. Returns how many.
int RecomputeInstead(const Schedule& schedule, WorkerId worker, int most, MemoryPlan& plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_ASSIGN_H_
