#ifndef SIPHON_PLANNER_SEARCH_RANDOM_CHANGES_H_
#define SIPHON_PLANNER_SEARCH_RANDOM_CHANGES_H_

#include <cstdint>
#include <vector>

#include "planner/drafts/draft_plan.h"
#include "planner/drafts/planning_problem.h"
#include "planner/keyed_hash.h"
#include "planner/search/draft_changes.h"

namespace siphon {

// Whose decisions change at once: those of one stage, or as often those of all stages of some
// neighbouring workers, or of all, in the same way. Where workers wait for each other one that is
// faster alone gains nothing.
enum class AnnealedStages { kOne, kNeighbours };

// Small changes of drafts, drawn at random: where one layer goes, when copies run, how many layers
// go together, who steps them. Of decisions that only some searches take (layers made early, state
// timed at home or streamed) those that the start takes, too; with neighbours all of them.
// Deterministic.
class RandomChanges {
 public:
  // The problem must outlive this.
  RandomChanges(const PlanningProblem& problem, const DraftPlan& start, WeightSearch weights,
                AnnealedStages together, uint64_t seed);

  // One decision; it may come to what it was.
  void Change(DraftPlan& draft);

  // Uniform in [0, sides), and in [0, 1).
  int Roll(int sides) { return static_cast<int>(dice_.Below(static_cast<uint64_t>(sides))); }
  double Uniform() { return dice_.Uniform(); }

 private:
  static constexpr int kFurthest = 3;  // actions that one change shifts a time

  Placement RollPlacement();
  bool Steps(int stage) const;
  void ChangeNeighbours(DraftPlan& draft);
  void ChangePlaces(int index, StageDraft& stage);
  int RollFirstTensors(int index, int layer);
  void ChangeTimes(int index, StageDraft& stage);
  void ChangeStage(int index, StageDraft& stage);
  void ChangeMadeEarly(StageDraft& stage);
  void ChangeStreams(StageDraft& stage);
  void ChangeActivationStreams(StageDraft& stage);
  void ChangeWeights(StageDraft& stage);
  void ChangeVersion(StageDraft& stage);
  void ChangeStep(StageDraft& stage);
  void ChangeHome(StageDraft& stage);
  void ChangeStateTimes(StageDraft& stage);
  std::vector<int>& RollTimes(StageDraft& stage);
  // A little earlier, or later.
  int RollShift() { return Roll(2 * kFurthest + 1) - kFurthest; }
  void ShiftOne(std::vector<int>& times, int by);

  const PlanningProblem& problem_;
  const std::vector<Placement> possible_;
  const bool host_steps_;
  const int decisions_;
  const bool makes_early_;
  const bool timed_;    // optimizer state, group by group
  const bool streams_;  // beside the host's step
  const bool tunes_streams_;
  const AnnealedStages together_;
  std::vector<int> steps_;  // stages that step at their end
  KeyedGenerator dice_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SEARCH_RANDOM_CHANGES_H_
