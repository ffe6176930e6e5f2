#ifndef SIPHON_PLANNER_SECOND_CHOICES_SPARE_LENDING_H_
#define SIPHON_PLANNER_SECOND_CHOICES_SPARE_LENDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "planner/action.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What workers have to lend to each other for second choices, beside their fullest moment with all
// that they lend by the plan.
class SpareLending {
 public:
  // `capacity`: [worker]; 0, or empty: no limit. `peak`: [worker], what it comes to hold at most,
  // by second choices of its own as well (computing_again.h). `granule`: of the memory that a
  // lender sets aside for an owner, however many stripes lie in it.
  SpareLending(const Topology& topology, DeviceMapping mapping, const std::vector<Bytes>& capacity,
               const std::vector<Bytes>& peak, Bytes granule);

  // Takes room for a group that is away so many times at once, with all lenders that have links to
  // and from its owner, by what they have left. None where that is not enough.
  std::optional<std::vector<Stripe>> Place(WorkerId owner, Bytes bytes, int64_t times);

 private:
  const Topology& topology_;
  const DeviceMapping mapping_;
  // What the last granule of an owner's memory may take beside its stripes.
  const Bytes rounding_;
  std::vector<Bytes> spare_;                          // [worker]
  std::set<std::pair<WorkerId, size_t>> sets_aside_;  // owner, worker that lends to it
};

// Whether any group of the plan has no second choice and can go to lenders by the program
// that it has: it is parked with the host or on a drive, and no optimizer step works on it there.
bool AnyWantsLenders(const MemoryPlan& plan);

// Groups of the plan that have no second choice, and can, go to lenders as far as there is room.
// `times`: how often the group is away at once; 0: never.
void LendToTheRest(const std::vector<WorkerId>& worker_of_stage,
                   absl::FunctionRef<int64_t(StageId stage, GroupId group)> times,
                   SpareLending spare, MemoryPlan& plan);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SECOND_CHOICES_SPARE_LENDING_H_
