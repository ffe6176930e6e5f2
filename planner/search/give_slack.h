#ifndef SIPHON_PLANNER_SEARCH_GIVE_SLACK_H_
#define SIPHON_PLANNER_SEARCH_GIVE_SLACK_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/topology.h"

namespace siphon {

// The topology with all ways of tensors a third slower.
Topology WithSlowerCopies(Topology topology);

// The draft whose step suffers least when copies take half as long again, among those whose own
// step is at most `longest`: stage by stage copies get more time, out or back, or less where others
// need the way. A simulated step that waits for nothing may have copies that end just when their
// tensors are needed; real ones then come too late half of the time. A draft that does not fit is
// left as it is.
//
// Never suffers more than `start`. Deterministic; up to 72 changes are tried, of large
// problems twelve, in `simulator`'s problem and in one with slower copies. Errors: as
// DraftSimulator::Run, but for ResourceExhausted.
absl::StatusOr<SimulatedDraft> GiveSlack(DraftSimulator& simulator, SimulatedDraft start,
                                         Nanos longest);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_GIVE_SLACK_H_
