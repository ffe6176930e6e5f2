#ifndef SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SHAPES_H_
#define SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SHAPES_H_

#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/strategies/harmony/harmony_cuts.h"
#include "planner/strategies/harmony/harmony_search.h"

namespace siphon {

// What the search tries for the problem's workers: numbers of stages, packs, groups of microbatches
// and partitions; everything kept. A partition is by time, by bytes, or in balance (HarmonyCutter);
// the more unlike the packs forward and backward, the fewer of them. A worker that has one pack
// takes its microbatches through that one by one, in groups or not: it has them all in one.
//
// Thread-compatible; remembers what its answers have in common. Requires: the problem outlives it.
class HarmonyShapes {
 public:
  explicit HarmonyShapes(const PlanningProblem& problem);

  // Groups forward and backward alike where a worker has several packs of both, unless there are
  // few combinations: then apart as well. Requires: a layer for each worker.
  std::vector<HarmonyChoice> Listed();

  // The choice's stages and packs with a larger group forward, or a larger one backward; in its own
  // partition, and in balance.
  std::vector<HarmonyChoice> WithLargerGroup(const HarmonyChoice& choice);

 private:
  std::vector<StagePartition> CutsFor(const ScheduleShape& shape);

  const PlanningProblem& problem_;
  HarmonyCutter cutter_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_HARMONY_HARMONY_SHAPES_H_
