#ifndef SIPHON_PLANNER_WEIGHT_STASHES_H_
#define SIPHON_PLANNER_WEIGHT_STASHES_H_

#include <vector>

#include "planner/ids.h"
#include "planner/schedule.h"

namespace siphon {

// The weights of a stage as they were before an UPDATE, for microbatches that still go by them.
// Places are in the program of the stage's worker.
struct WeightStash {
  StageId stage;
  MicrobatchId update;  // of that UPDATE: the name of the version
  int born = -1;        // place of the UPDATE that has made the version; -1: none has
  int begin = 0;        // place of the UPDATE that replaces it
  int first_use = 0;    // places of the first and of the last action behind that which goes by it
  int last_use = 0;
  friend bool operator==(const WeightStash&, const WeightStash&) = default;
};

// The stashes of one worker's program, by the schedule's WeightRule. F, B, I, W and RECOMPUTE of a
// microbatch go by one version. A version that nothing goes by behind its UPDATE is no stash.
struct WeightStashes {
  static constexpr int kNone = -1;

  std::vector<WeightStash> stashes;  // by stage, then by UPDATE
  // [place]: the stash that the action goes by, or, of an UPDATE, the one that it makes; kNone
  // where there is none. Empty without UPDATE.
  std::vector<int> of_place;

  int At(int place) const { return of_place.empty() ? kNone : of_place[place]; }
  // By the version's name; kNone: there is no such stash. O(log(stashes)).
  int Find(StageId stage, MicrobatchId update) const;
};

// O(actions * log(actions)).
WeightStashes FindWeightStashes(const Schedule& schedule, WorkerId worker);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_STASHES_H_
