#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/planning_problem.h"
#include "planner/strategies/mpress/mpress_stripes.h"

namespace siphon {

// Where workers go when the problem does not say.
enum class MpressMapping {
  kInOrder,   // worker w on device w, as DAPPLE has it
  kSearched,  // by the longest D2D swap (section III.C)
};

// Figure 9 of the paper switches these on one after the other.
struct MpressOptions {
  MpressMapping mapping = MpressMapping::kSearched;
  MpressStriping striping = MpressStriping::kStriped;
};

// The plan of MPress (Zhou et al., HPCA 2023, section III.D), as published:
// 1. Live intervals, from a step that keeps everything (footnote 1).
// 2. The activations of the workers that are too full go to the host or are recomputed, each group
//    (a layer) by its own times, and the weights that they stash to the host; optimizer state goes
//    to the host as far as that is not enough.
// 3. The worker whose groups add most time gives those that add most to lenders, as far as these
//    have spare memory, or recomputes what it swaps to the host, and the simulator keeps the change
//    if the step is faster: until nothing is.
// 4. The same with all workers' activations saved, which makes room on lenders, and with optimizer
//    state sent away before, or after, activations that a full worker would swap are recomputed;
//    the fastest wins.
//
// It saves more than it must: whole workers at first, of which only what is slow is looked at again
// (Table IV: 189 GB where 69 are too much). The number of simulations is bounded.
//
// Where the paper says nothing: MpressFacts, ties (lower ids), and how many groups a worker gives
// at once (all, then half as many, down to one).
//
// Errors: InvalidArgument as CheckPlanningProblem, and for replicas; ResourceExhausted naming the
// fullest worker, what it needs and its capacity.
absl::StatusOr<PlannedStep> PlanMpress(const PlanningProblem& problem,
                                       const MpressOptions& options);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_H_
