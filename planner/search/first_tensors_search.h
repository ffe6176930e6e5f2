#ifndef SIPHON_PLANNER_SEARCH_FIRST_TENSORS_SEARCH_H_
#define SIPHON_PLANNER_SEARCH_FIRST_TENSORS_SEARCH_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Goes on from a draft whose layers' activations go as wholes: of layers that are dropped or away
// only the tensors that they save first, where that is faster, alone or with layers that were kept
// so far in their place. All stages alike first, then each by itself; at most so many simulations.
// The result is never worse than the start. Errors: as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> SearchFirstTensors(DraftSimulator& simulator, SimulatedDraft start,
                                                  int most_simulations);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_FIRST_TENSORS_SEARCH_H_
