#ifndef SIPHON_PLANNER_SEARCH_UNIFORM_STARTS_H_
#define SIPHON_PLANNER_SEARCH_UNIFORM_STARTS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// The best of drafts in which all stages do the same: the optimizer state of so many of their last
// layers is with the host, and so many of their last layers are computed again, as few as fit for
// each number of the former. Where all workers wait for each other, none gains by doing less than
// the others, as each does in the drafts of BestStart.
//
// `kept` is a simulation of a draft that keeps everything; its map stays. Errors: ResourceExhausted
// where no such draft can be simulated; as DraftSimulator::Run. About 35 simulations at most.
absl::StatusOr<SimulatedDraft> BestUniformStart(DraftSimulator& simulator,
                                                const SimulatedDraft& kept);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_UNIFORM_STARTS_H_
