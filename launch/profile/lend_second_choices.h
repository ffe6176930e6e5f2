#ifndef SIPHON_LAUNCH_PROFILE_LEND_SECOND_CHOICES_H_
#define SIPHON_LAUNCH_PROFILE_LEND_SECOND_CHOICES_H_

#include <vector>

#include "planner/plan_text.h"
#include "planner/second_choices/take_second_choices.h"
#include "swap/parking_layout.h"

namespace siphon {

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
