#ifndef SIPHON_LAUNCH_RUN_FOLLOW_REPLAN_H_
#define SIPHON_LAUNCH_RUN_FOLLOW_REPLAN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/measured_steps.h"
#include "planner/plan_text.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/units.h"

namespace siphon {

// A plan in force beside what there could be instead, all predicted by what its run was found to
// take.
struct ReplanStudy {
  Nanos now;   // a step by the plan in force
  Nanos kept;  // with everything kept, as if capacities were no limit
  Nanos best;  // by the plan that was found; 0: none was looked for
  // What to follow instead: where that gains enough.
  std::optional<PlanText> plan;
};

// Whether a step of `then` instead of `now`, both predicted, is worth a move where steps by the
// plan in force take `measured`: by more than 5 % of a step, predicted or measured, whichever is
// longer, and by more than that prediction is off.
bool GainsEnough(Nanos now, Nanos then, Nanos measured);

// Plans the memory of a running job again: the job's strategy and capacities, by times as measured;
// by rates of links as measured or as the topology has them, whichever foretells better what steps
// take (a link's time has in it what others had of the same uplink, which a simulation adds by
// itself). Partition, schedule, worker of each stage and device of each worker stay, for tensors
// live where they are. Plans only where even everything kept, which is no slower than what a plan
// can find, would gain enough. Takes as long as planning the job did, at most.
//
// Errors: FailedPrecondition where the plan in force cannot be left, saying why; as
// PlanFittingStep.
absl::StatusOr<ReplanStudy> StudyReplan(const PreparedJob& prepared, const FollowedPlan& in_force,
                                        const MeasuredRun& measured);

// "re-planned in 0.3 s: predicted 1.21 s instead of 1.45 s a step (measured 1.44 s)", or why the
// plan stays.
std::string ReplanText(const ReplanStudy& study, Nanos measured, Nanos planning);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_FOLLOW_REPLAN_H_
