#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_SELECT_REMOVALS_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_SELECT_REMOVALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// When a weight may be away: section 5 of the paper, choice d = 1 and d = 0.
enum class RemovalGap { kForwardToBackward, kBackwardToForward };

struct Removal {
  int layer = 0;
  RemovalGap gap = RemovalGap::kForwardToBackward;
  friend bool operator==(const Removal&, const Removal&) = default;
};

// Only the backward changes a weight: one that is away in both gaps needs to be sent once a step
// (kUse, the paper's Greedy), unless every removal sends (kIgnore, its Greedy*).
enum class Discount { kUse, kIgnore };

// Which of equally profitable removals is taken: of the first or of the last layer, and d = 1
// before d = 0. The paper does not say. By the last layer, Greedy idles for no longer than
// published in all of Table 1; by the first, for exactly the published time in seven rows.
enum class Ties { kFirstLayer, kLastLayer };

// Algorithm 1: takes the removal that saves most memory in the operations that overflow, per byte
// moved, until none is of use.
// Where even all removals leave less than the spare room that Overflows counts, operations fit, but
// transfers beside them may have to wait.
// Errors: as for CheckWeightOffloadProblem. O(L^3).
absl::StatusOr<std::vector<Removal>> SelectRemovals(const WeightOffloadProblem& problem,
                                                    Discount discount,
                                                    Ties ties = Ties::kLastLayer);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_SELECT_REMOVALS_H_
