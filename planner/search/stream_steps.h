#ifndef SIPHON_PLANNER_SEARCH_STREAM_STEPS_H_
#define SIPHON_PLANNER_SEARCH_STREAM_STEPS_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/draft_simulator.h"

namespace siphon {

// Whether any stage streams state beside the host's step (StageDraft::groups_streamed).
bool Streams(const DraftPlan& draft);

// The best draft in which some layers of each stage step on the host while the state of others
// comes in, steps on the device and leaves again, so that host and links work together: as `best`
// is otherwise, where that steps on the host, or with all stages alike and as many layers computed
// again as that takes, with or without state at home. Errors: ResourceExhausted where the host may
// not step, or nothing came to a simulation; else as DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> BestStreamed(DraftSimulator& simulator, const SimulatedDraft& best);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_STREAM_STEPS_H_
