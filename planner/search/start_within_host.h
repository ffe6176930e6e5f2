#ifndef SIPHON_PLANNER_SEARCH_START_WITHIN_HOST_H_
#define SIPHON_PLANNER_SEARCH_START_WITHIN_HOST_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Whether what is too much for the workers in `kept`, which keeps everything, may be too much for
// their hosts as well: more than half of what these hold.
bool MayFillHosts(const PlanningProblem& problem, const SimulatedDraft& kept);

// The best of drafts with hosts as full as they can be, and in each stage as many layers computed
// again in place of what they have no room for: the slowest stage makes the step, so that all do as
// much. They are made of the best start if hosts held anything, whose backwards compute layers
// again as they do there or one by one; without its optimizer state where hosts have no room for
// that. Of the layers that leave for the host the last ones are computed again, as few as are
// enough.
//
// `kept` keeps everything; its map stays. Errors: FailedPrecondition where hosts have room for that
// start as it is, so that a search begins there anyway; ResourceExhausted where no such draft fits;
// as DraftSimulator::Run. 25 to 50 simulations beside those of BestStart.
absl::StatusOr<SimulatedDraft> StartWithinHost(DraftSimulator& simulator, const DraftPlan& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_START_WITHIN_HOST_H_
