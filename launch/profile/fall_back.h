#ifndef SIPHON_LAUNCH_PROFILE_FALL_BACK_H_
#define SIPHON_LAUNCH_PROFILE_FALL_BACK_H_

#include <map>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/second_choices/take_second_choices.h"
#include "swap/parking_layout.h"

namespace siphon {

// The plan as workers follow it at the moment.
struct PlanInForce {
  FollowedPlan plan;
  std::vector<WorkerParking> parking;  // [worker]; empty where nobody parks anything
  // Whose optimizer steps on the host work in a file on their drive, mapped into memory.
  std::set<WorkerId> steps_on_drive;
  friend bool operator==(const PlanInForce&, const PlanInForce&) = default;
};

// A place where a worker shall park nothing any more.
struct LeftPlace {
  WorkerId owner;
  ParkingPlace place;
  friend bool operator==(const LeftPlace&, const LeftPlace&) = default;
};

// What becomes of groups that have no second choice.
enum class WithoutSecondChoice {
  kRefuse,  // nothing can be left there
  kStay,    // it goes on as it is
};

struct FallBackResult {
  PlanInForce now;
  std::map<Placement, int> moved;  // groups, by where they go
};

// The owner's groups that are in part at that place take their second choice, as they were budgeted
// for (BudgetSecondChoices): where that is to be computed again, with all others of the owner on
// the same tier that would be, since that has been tried together. Other workers' programs and
// slots stay as they are. What stays on the host for an optimizer step there (StaysForHostStep)
// does so: a host that refuses leaves its room to the owner's drive (WorkerParking::host_on_drive),
// and to a slow link to the host a drive is no way around.
//
// `stripes`: where groups go whose second choice is with lenders. Pure, so that all workers come to
// the same. Errors: FailedPrecondition, with kRefuse, naming a group without a second choice.
absl::StatusOr<FallBackResult> FallBack(PlanInForce before, const LeftPlace& left,
                                        WithoutSecondChoice without,
                                        const SecondStripes& stripes = {});

// The host does not give the owner's optimizer steps there their memory: they work on the owner's
// drive, if that is the second choice of all its optimizer state which steps on the host. Pure.
// Errors: FailedPrecondition naming such a group without it, or that there is none.
absl::StatusOr<FallBackResult> StepOnDrive(PlanInForce before, WorkerId owner);

// Whether the worker has anything at that place.
bool ParksAt(const PlanInForce& plan, const LeftPlace& place);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_FALL_BACK_H_
