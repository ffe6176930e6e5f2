#include "planner/strategies/anneal_draft.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/keyed_hash.h"
#include "planner/status.h"
#include "planner/strategies/draft_changes.h"
#include "planner/strategies/made_early.h"
#include "planner/strategies/move_lists.h"
#include "planner/strategies/start_drafts.h"
#include "planner/strategies/stream_steps.h"
#include "planner/strategies/time_state_home.h"

namespace siphon {
namespace {

constexpr uint64_t kSeed = 1;
// Of the step time: how much slower changes are taken one time in e at the begin; 0 at the end.
// Where there are simulations enough it is hotter, and begins anew from where it ended: what grew
// cold may have been the wrong valley.
constexpr double kHot = 0.01;
constexpr double kHottest = 0.1;
constexpr int kManySimulations = 2'000;
constexpr int kRounds = 3;
// A draft that needs all of one capacity more counts as so many times as slow.
constexpr double kExcessWeight = 3;

class Annealer {
 public:
  Annealer(DraftSimulator& simulator, SimulatedDraft start, int simulations, WeightSearch weights)
      : simulator_(simulator),
        problem_(simulator.problem()),
        possible_(PossiblePlacements(problem_, start.draft.mapping)),
        host_steps_(HostMayStep(problem_, start.draft.mapping)),
        first_(simulator.simulations()),
        most_(simulations),
        decisions_(weights == WeightSearch::kAnywhere ? 10 : 8),
        makes_early_(MakesEarly(start.draft)),
        timed_(IsStateTimed(start.draft)),
        streams_(Streams(start.draft)),
        best_(std::move(start)) {
    for (const std::vector<DraftMove>& moves : UpdateMoves(problem_)) {
      for (const DraftMove& move : moves) steps_.push_back(move.stage);
    }
    for (const Bytes capacity : problem_.capacity) largest_ = std::max(largest_, capacity);
  }

  absl::StatusOr<SimulatedDraft> Run() {
    DraftPlan now = best_.draft;
    double cost = CostOf(best_);
    const double hottest =
        (most_ < kManySimulations ? kHot : kHottest) * static_cast<double>(best_.score.step.value);
    while (simulator_.simulations() - first_ < most_) {
      const double heat = hottest * Heat();
      DraftPlan changed = now;
      for (int changes = 1 + Roll(2); changes > 0; --changes) Change(changed);
      if (changed == now) {
        // Dice that never find a change must end, too.
        if (++idle_ > kMostIdle) break;
        continue;
      }
      idle_ = 0;
      absl::StatusOr<SimulatedDraft> tried = simulator_.Run(std::move(changed));
      if (absl::IsResourceExhausted(tried.status())) continue;
      if (!tried.ok()) return tried.status();
      const double new_cost = CostOf(*tried);
      if (new_cost > cost && dice_.Uniform() >= std::exp((cost - new_cost) / heat)) continue;
      now = tried->draft;
      cost = new_cost;
      if (tried->score < best_.score) best_ = *std::move(tried);
    }
    return std::move(best_);
  }

 private:
  static constexpr int kMostIdle = 1'000;

  // From 1 down to 0, once or kRounds times.
  double Heat() const {
    const double rounds = (most_ < kManySimulations ? 1 : kRounds) *
                          static_cast<double>(simulator_.simulations() - first_) / most_;
    return 1 - (rounds - std::floor(rounds));
  }

  int Roll(int sides) { return static_cast<int>(dice_.Below(static_cast<uint64_t>(sides))); }

  double CostOf(const SimulatedDraft& simulated) const {
    const auto step = static_cast<double>(simulated.score.step.value);
    if (simulated.score.excess == Bytes(0)) return step;
    return step * (1 + kExcessWeight * static_cast<double>(simulated.score.excess.value) /
                           static_cast<double>(std::max(Bytes(1), largest_).value));
  }

  Placement RollPlacement() { return possible_[Roll(static_cast<int>(possible_.size()))]; }

  void Change(DraftPlan& draft) {
    constexpr int kMostActions = 6;
    constexpr int kFewActions = 2;
    const int index = Roll(static_cast<int>(draft.stages.size()));
    StageDraft& stage = draft.stages[index];
    const bool steps = std::find(steps_.begin(), steps_.end(), index) != steps_.end();
    if (makes_early_ && Roll(decisions_) == 0) return ChangeMadeEarly(stage);
    switch (Roll(decisions_)) {
      case 0:
        stage.timing.forwards_to_leave = Roll(kMostActions);
        return;
      case 1:
        stage.timing.actions_to_come_back = Roll(kMostActions);
        return;
      case 2:
        (Roll(2) == 0 ? stage.recompute_run : stage.swap_run) = Roll(kMostActions);
        if (Roll(2) == 0) {
          stage.direct = stage.direct == DirectBackward::kDrop ? DirectBackward::kLeave
                                                               : DirectBackward::kDrop;
        }
        return;
      case 3:
        if (steps) ChangeStep(stage);
        return;
      case 8:
      case 9:
        if (steps) ChangeWeights(stage);
        return;
      default:
        if (!stage.weight_versions.empty() && Roll(2) == 0) {
          ChangeVersion(stage);
          return;
        }
        stage.activations[Roll(static_cast<int>(stage.activations.size()))] = RollPlacement();
        if (Roll(3) > 0) return;
        // What goes elsewhere, and when: where memory is scarce, only both together fit.
        stage.timing.forwards_to_leave = Roll(kFewActions);
        stage.timing.actions_to_come_back = Roll(kFewActions);
    }
  }

  void ChangeMadeEarly(StageDraft& stage) {
    constexpr int kFewActions = 3;
    stage.layers_made_early = Roll(static_cast<int>(stage.activations.size()) + 1);
    stage.actions_made_early = Roll(kFewActions);
  }

  void ChangeWeights(StageDraft& stage) {
    std::vector<Placement>& layers = Roll(2) == 0 ? stage.parameters : stage.gradients;
    Placement& layer = layers[Roll(static_cast<int>(layers.size()))];
    const Placement placement = RollPlacement();
    if (placement != Placement::kRecompute) layer = placement;
  }

  void ChangeVersion(StageDraft& stage) {
    const Placement placement = RollPlacement();
    if (placement == Placement::kRecompute) return;
    stage.weight_versions[Roll(static_cast<int>(stage.weight_versions.size()))] = placement;
  }

  void ChangeStep(StageDraft& stage) {
    constexpr int kMostAhead = 5;
    constexpr int kFewAhead = 2;
    const int decisions = host_steps_ ? 4 : 3;
    const bool home = stage.timing.groups_away_between_steps != SwapTiming::kAllGroups;
    if (streams_ && Roll(decisions) == 0) {
      stage.groups_streamed = Roll(static_cast<int>(stage.optimizer_state.size()) + 1);
      return;
    }
    const int decision = Roll(home ? decisions + 1 : decisions);
    if (decision == decisions) return ChangeHome(stage);
    switch (decision) {
      case 0:
        stage.timing.actions_before_step = Roll(kMostAhead);
        return;
      case 1:
        stage.timing.groups_ahead = Roll(kMostAhead);
        return;
      case 2: {
        const Placement placement = RollPlacement();
        if (placement == Placement::kRecompute) return;
        stage.optimizer_state[Roll(static_cast<int>(stage.optimizer_state.size()))] = placement;
        if (Roll(2) == 0) return;
        stage.timing.actions_before_step = Roll(kFewAhead);
        stage.timing.groups_ahead = Roll(kFewAhead);
        return;
      }
      default:
        if (stage.update == UpdatePlace::kHost) {
          stage.update = UpdatePlace::kDevice;
        } else if (Roll(2) == 0) {
          stage.update = UpdatePlace::kHost;
        } else {
          PutStepOnHost(stage);
        }
    }
  }

  void ChangeHome(StageDraft& stage) {
    constexpr int kMostForwards = 8;
    constexpr int kMostActions = 16;
    if (timed_) return ChangeHomeTimes(stage);
    switch (Roll(3)) {
      case 0:
        stage.timing.forwards_to_leave_home = 1 + Roll(kMostForwards);
        return;
      case 1:
        stage.timing.actions_to_come_home = Roll(kMostActions);
        return;
      default:
        stage.timing.groups_away_between_steps =
            Roll(static_cast<int>(stage.optimizer_state.size()) + 1);
    }
  }

  // A little earlier or later: what fits the memory is narrow.
  void ChangeHomeTimes(StageDraft& stage) {
    constexpr int kFurthest = 3;
    const int by = Roll(2 * kFurthest + 1) - kFurthest;
    if (Roll(4) == 0) {
      int& away = stage.timing.groups_away_between_steps;
      away =
          std::clamp(away + (by > 0 ? 1 : -1), 0, static_cast<int>(stage.optimizer_state.size()));
      return;
    }
    std::vector<int>& times = Roll(2) == 0 ? stage.home.gone : stage.home.ahead;
    if (times.empty()) return;
    int& time = times[Roll(static_cast<int>(times.size()))];
    time = std::max(0, time + by);
  }

  DraftSimulator& simulator_;
  const PlanningProblem& problem_;
  const std::vector<Placement> possible_;
  const bool host_steps_;
  const int first_;
  const int most_;
  const int decisions_;
  const bool makes_early_;
  const bool timed_;        // optimizer state that is home
  const bool streams_;      // beside the host's step
  std::vector<int> steps_;  // stages that step at their end
  Bytes largest_;           // capacity
  SimulatedDraft best_;
  int idle_ = 0;
  KeyedGenerator dice_{kSeed};
};

}  // namespace

absl::StatusOr<SimulatedDraft> AnnealDraft(DraftSimulator& simulator, SimulatedDraft start,
                                           int simulations, WeightSearch weights) {
  return Annealer(simulator, std::move(start), simulations, weights).Run();
}

}  // namespace siphon
