#ifndef SIPHON_LAUNCH_PROFILE_MOVING_STATE_H_
#define SIPHON_LAUNCH_PROFILE_MOVING_STATE_H_

#include <set>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"
#include "planner/units.h"

namespace siphon {

// Leaves to the layers of the problem's profile the state that workers can move (StateGroup of
// pipeline/state_memory.h), and has the rest held: parameters and gradients of parameters that
// several layers use, tied embeddings that is. No worker has more or less of it than before.
//
// Sizes are those of HeldBytesOf. Requires: `inputs` has the model, precision and moments of the
// problem's profile, whose bytes are those of PlanningProfile, and `held` has all workers.
void HoldWhatCannotMove(const MemoryInputs& inputs, PlanningProblem& problem);

// [worker]: what adding up the gradients of parameters that its stages share with others takes at
// the end of a step: room for those of the others, and for the sums.
std::vector<Bytes> SharedGradientBytes(const ModelSpec& model, const StagePartition& partition,
                                       const Schedule& schedule);

// [worker]: what its optimizer steps on the host (UpdatePlace::kHost) take there: optimizer state,
// and a copy each of parameters and gradients, but for those that the plan parks with the host. At
// most, without `inputs`, where only some of a worker's stages have theirs there and layers share
// parameters.
// Requires: as `problem` is after HoldWhatCannotMove.
//
// With `inputs`, as above (else null), each tensor begins at 64 bytes, as in HostSteps of
// pipeline/host_steps, and it is exact.
std::vector<Bytes> HostStepBytes(const PlanningProblem& problem, const MemoryPlan& plan,
                                 const MemoryInputs* inputs = nullptr);

// What the optimizer state of these stages takes on the host, each tensor at 64 bytes. Requires: as
// HostStepBytes.
Bytes HostStateBytes(const PlanningProblem& problem, const MemoryInputs& inputs,
                     const std::set<StageId>& stages);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_MOVING_STATE_H_
