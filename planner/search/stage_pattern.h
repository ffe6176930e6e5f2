#ifndef SIPHON_PLANNER_SEARCH_STAGE_PATTERN_H_
#define SIPHON_PLANNER_SEARCH_STAGE_PATTERN_H_

#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// What a stage does, in few numbers that mean the same for stages of any size. Every value is a
// draft of a stage: what is too much for it is left out.
struct StagePattern {
  // Of so many layers as the largest stage has, in eighths of a layer: the last layers are computed
  // again, the first ones go to the host, those behind these to lenders, and the rest stays. Of a
  // layer that does not go whole some microbatches stay (StageDraft::shares).
  int again = 0;
  int to_host = 0;
  int to_lenders = 0;
  // Of a layer that is computed again some of the tensors stay: so many of its CheapestDrops are
  // left out, from the largest one down.
  int drops_left_out = 0;
  int actions_made_early = 0;  // 0: within the backward; n: n - 1 actions before it
  int forwards_to_leave = 1;
  int actions_to_come_back = 1;
  int first_stay = 0;   // SwapTiming::Turn::kFirstStay
  int drop_direct = 0;  // DirectBackward::kDrop
  // Optimizer state of so many of the last layers goes to the host, in eighths of a stage.
  int state = 0;
  int host_steps = 0;  // and steps there, but for
  int streamed = 0;    // so many groups, the first ones, that step on the device all the same,
  int home = 0;        // and what is home between steps, in eighths of a stage, the last ones
  int actions_before_step = 0;
  int groups_ahead = 1;
  int forwards_to_leave_home = 1;
  int actions_to_come_home = 1;
  friend bool operator==(const StagePattern&, const StagePattern&) = default;
};

// A number of a pattern, and the most that it can be, from 0 on.
struct PatternNumber {
  int StagePattern::*number;
  int most = 1;
  bool is_activations = false;  // eighths of layers
};
// Those that mean something for the problem. `layers`: of its largest stage.
std::vector<PatternNumber> PatternNumbers(const PlanningProblem& problem, int layers);

// Writes patterns into drafts of one problem.
class PatternWriter {
 public:
  // The problem must outlive this.
  explicit PatternWriter(const PlanningProblem& problem);

  int layers() const { return layers_; }  // of the largest stage
  // Requires: `stage` is the one of that index, and keeps everything.
  void Write(const StagePattern& pattern, int index, StageDraft& stage) const;

 private:
  void PlaceActivations(const StagePattern& pattern, int index, StageDraft& stage) const;
  void PlaceState(const StagePattern& pattern, StageDraft& stage) const;

  const PlanningProblem& problem_;
  int layers_ = 0;
  // [stage]: layers that save anything of their own; [stage][layer]: numbers of first tensors, the
  // largest drop first.
  std::vector<std::vector<int>> saving_;
  std::vector<std::vector<std::vector<int>>> drops_;
  std::vector<bool> steps_;  // [stage]: its state may be away
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_STAGE_PATTERN_H_
