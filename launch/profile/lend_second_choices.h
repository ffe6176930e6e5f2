#ifndef SIPHON_LAUNCH_PROFILE_LEND_SECOND_CHOICES_H_
#define SIPHON_LAUNCH_PROFILE_LEND_SECOND_CHOICES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/plan_text.h"
#include "planner/schedule.h"
#include "planner/strategies/take_second_choices.h"
#include "planner/topology.h"
#include "planner/units.h"
#include "swap/parking_layout.h"

namespace siphon {

// What workers have to lend to each other for second choices, beside their fullest moment with all
// that they lend by the plan. Who may come to compute groups again, as a second choice of its own,
// lends nothing: that takes more than its plan.
class SpareLending {
 public:
  // `capacity`: [worker]; 0, or empty: no limit. `peak`: [worker].
  SpareLending(const Topology& topology, DeviceMapping mapping, const std::vector<Bytes>& capacity,
               const std::vector<Bytes>& peak, const MemoryPlan& plan,
               const std::vector<WorkerId>& worker_of_stage);

  // Takes room for a group that is away so many times at once, with all lenders that have links to
  // and from its owner, by what they have left. None where that is not enough.
  std::optional<std::vector<Stripe>> Place(WorkerId owner, Bytes bytes, int64_t times);

 private:
  const Topology& topology_;
  const DeviceMapping mapping_;
  std::vector<Bytes> spare_;  // [worker]
};

// Whether workers can send the group to a lender by the program that it has: it is parked with the
// host or on a drive, and no optimizer step works on it there.
bool CanGoToLenders(const StagePlan& stage, const PlannedGroup& planned);

// Where second choices with lenders go, and what workers park if all of them are taken: at each
// place the most of that and of the plan. Of equal plans the same, so that nobody asks. [worker];
// empty where nobody parks anything. Pure.
struct SecondLending {
  SecondStripes stripes;
  std::vector<WorkerParking> at_most;
  friend bool operator==(const SecondLending&, const SecondLending&) = default;
};
// `plan` as it is predicted; `parking`: LayOutParking of it.
SecondLending SecondLendingOf(const PlanText& plan, const std::vector<WorkerParking>& parking);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_LEND_SECOND_CHOICES_H_
