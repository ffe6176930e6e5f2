#ifndef SIPHON_PLANNER_SEARCH_HOME_STARTS_H_
#define SIPHON_PLANNER_SEARCH_HOME_STARTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/memory_plan.h"

namespace siphon {

// Starts for other searches, of drafts that compute layers again and have optimizer state with the
// host during the step, both at once: all stages alike in the one, and of the other as few layers
// as each worker needs. Some of the state steps on the host; the rest is home between steps, leaves
// while forwards run and comes back behind the last backwards; layers are computed again in their
// backward or before it. Searches that take one such decision after the other rarely come there:
// each by itself makes the step longer.
//
// The best one with equal shares of state, and the best one with equal shares of layers computed
// again; none of a kind of which nothing fits, or where no state can leave for the host. Runs
// `simulations` at most, but for what the last draft takes. Errors: as DraftSimulator::Run, but for
// ResourceExhausted.
absl::StatusOr<std::vector<SimulatedDraft>> HomeStarts(DraftSimulator& simulator,
                                                       const DeviceMapping& mapping,
                                                       int simulations);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_HOME_STARTS_H_
