#ifndef SIPHON_TESTS_BENCH_PLAN_GAPS_EVERY_DRAFT_H_
#define SIPHON_TESTS_BENCH_PLAN_GAPS_EVERY_DRAFT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

struct DraftOptimum {
  int64_t drafts = 0;                  // that differ, all simulated
  std::optional<SimulatedDraft> best;  // the shortest step of those that fit; none: nothing fits
};

// The optimum over the whole space of DraftPlan, by simulating every one of them: each placement of
// each layer's activations and optimizer state, each timing from 0 to 6 (beyond which copies of
// steps as small as these have all the time there is), all ways in which layers go together, who
// steps, and who of the devices is who. It knows nothing of how a search goes about it.
//
// Left out is only what means the same: decisions about copies of a stage that has none, or about
// recomputation where nothing is computed again; and what lowers to the same program and groups of
// a worker, since a step is simulated from these and the lenders alone.
//
// Errors: ResourceExhausted when there are more than `most_drafts`; else as DraftSimulator::Run.
absl::StatusOr<DraftOptimum> BestOfEveryDraft(const PlanningProblem& problem, int64_t most_drafts);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_PLAN_GAPS_EVERY_DRAFT_H_
