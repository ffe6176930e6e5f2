#ifndef SIPHON_PLANNER_SEARCH_ANNEAL_DRAFT_H_
#define SIPHON_PLANNER_SEARCH_ANNEAL_DRAFT_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/search/draft_changes.h"
#include "planner/search/random_changes.h"

namespace siphon {

// Changes one or two small decisions of the draft at a time (random_changes.h). A change that is a
// little slower is taken, too, and less and less so (simulated annealing: Kirkpatrick, Gelatt and
// Vecchi, Science 220, 1983): that leads out of drafts which no single change of ImproveDraft makes
// better. Runs `simulations` at most.
//
// The result is the best draft seen, never worse than `start`. Deterministic: the dice have a fixed
// seed. Errors: as DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> AnnealDraft(DraftSimulator& simulator, SimulatedDraft start,
                                           int simulations, WeightSearch weights,
                                           AnnealedStages stages = AnnealedStages::kOne);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_ANNEAL_DRAFT_H_
