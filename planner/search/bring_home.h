#ifndef SIPHON_PLANNER_SEARCH_BRING_HOME_H_
#define SIPHON_PLANNER_SEARCH_BRING_HOME_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// The best draft in which some of the optimizer state that `best` steps on the host is home for its
// step and until the next step begins, and steps on the device: layer by layer, first of the last
// workers, which wait longest for the pipeline to fill and to drain; or of all workers as much as
// they have room for between steps. Errors: ResourceExhausted where nothing steps on the host, or
// nothing came to a simulation; else as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestBroughtHome(DraftSimulator& simulator,
                                               const SimulatedDraft& best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_BRING_HOME_H_
