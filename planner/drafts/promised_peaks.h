#ifndef SIPHON_PLANNER_DRAFTS_PROMISED_PEAKS_H_
#define SIPHON_PLANNER_DRAFTS_PROMISED_PEAKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"
#include "planner/simulator/simulate_times.h"
#include "planner/units.h"

namespace siphon {

// What a plan has at each place at most, however long copies take: of every group as many tensors
// as the owner's program has away at once, each with room of its own, all groups together.
struct ParkedAtMost {
  std::vector<Bytes> with_device;  // [device]
  std::vector<Bytes> with_host;    // [server], optimizer steps there included
  std::vector<Bytes> with_drive;   // [drive]
  friend bool operator==(const ParkedAtMost&, const ParkedAtMost&) = default;
};

// Activations are away from SWAP_OUT until SWAP_IN_END, or else the B or I that has them back; of
// weight versions all count that there ever are at once, of what is there once the one. Stripes
// take whole granules, each by itself.
// Requires: `schedule` is LowerMemoryPlan's for the problem and `memory`.
ParkedAtMost ParkedAtMostBy(const PlanningProblem& problem, const DeviceMapping& mapping,
                            const MemoryPlan& memory, const Schedule& schedule);

// [worker of one replica]: what each holds at most of its own in the simulated step, and beside it
// all that others ever have with it at most: LendingRule::kPeaks. What a worker holds of its own
// follows from the order of its program, not from when copies end.
// Requires: as above; `times` has who lends what, unless there are replicas.
// Errors: ResourceExhausted when the host, a drive or a device without a worker has less memory
// than may have to be there at once.
absl::StatusOr<std::vector<Bytes>> PromisedPeaks(const PlanningProblem& problem,
                                                 const DeviceMapping& mapping,
                                                 const MemoryPlan& memory, const Schedule& schedule,
                                                 const StepTimes& times);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_PROMISED_PEAKS_H_
