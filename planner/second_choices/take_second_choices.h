#ifndef SIPHON_PLANNER_SECOND_CHOICES_TAKE_SECOND_CHOICES_H_
#define SIPHON_PLANNER_SECOND_CHOICES_TAKE_SECOND_CHOICES_H_

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/schedule.h"

namespace siphon {

// A memory plan with the schedule that follows it.
struct FollowedPlan {
  MemoryPlan memory;
  Schedule schedule;  // lowered, with the memory actions
  friend bool operator==(const FollowedPlan&, const FollowedPlan&) = default;
};

// Whether it is elsewhere, and goes to `second` when that refuses.
bool WouldGo(const PlannedGroup& planned, Placement second);

// Whether an optimizer step on the host works on the group where that has it: its optimizer state,
// and parameters and gradients that are with the host while any of their layers steps there. What
// stands elsewhere would have to come in for that step, and so would the state for one on the
// device: with other programs. So all that can change is what the host's room for it is made of:
// its second choice, if it has one, is kNvmeSwap, and means a file on the worker's drive, mapped
// into memory.
bool StaysForHostStep(const StagePlan& stage, const PlannedGroup& planned);

// Which groups shall go their second way.
using ConcernsGroup = std::function<bool(StageId stage, const PlannedGroup& planned)>;

// Where groups go whose second choice is kPeerSwap.
using SecondStripes = std::map<std::pair<StageId, GroupId>, std::vector<Stripe>>;

// `plan` with the groups that `concerns` names at their second choice, and no second choice left
// for them. Groups keep their ids. Where another place takes them their actions stay as they are,
// and where they stay for a step on the host (StaysForHostStep) all the rest of their choice as
// well; what is to be computed again leaves where it left before (DROP for SWAP_OUT, before the
// same F), and nothing brings it back but the backward that needs it. So no action of any other
// group, and of any other worker, changes.
//
// Pure. Requires: the schedule is LowerMemoryPlan's for the plan. Errors: FailedPrecondition naming
// a group that has no second choice, or one with lenders of which `stripes` does not say which.
absl::StatusOr<FollowedPlan> TakeSecondChoices(FollowedPlan plan, const ConcernsGroup& concerns,
                                               const SecondStripes& stripes = {});

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_TAKE_SECOND_CHOICES_H_
