#include "planner/search/random_changes.h"

#include <algorithm>
#include <cstddef>

#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/model_profile.h"
#include "planner/search/activation_streams.h"
#include "planner/search/made_early.h"
#include "planner/search/stream_steps.h"
#include "planner/search/time_state_home.h"
#include "planner/search/weight_streams.h"

namespace siphon {

RandomChanges::RandomChanges(const PlanningProblem& problem, const DraftPlan& start,
                             WeightSearch weights, AnnealedStages together, uint64_t seed)
    : problem_(problem),
      possible_(PossiblePlacements(problem, start.mapping)),
      host_steps_(HostMayStep(problem, start.mapping)),
      decisions_(weights == WeightSearch::kAnywhere ? 10 : 8),
      makes_early_(MakesEarly(start)),
      timed_(IsStateTimed(start)),
      streams_(Streams(start)),
      tunes_streams_(TunesStreams(start) || StreamsActivations(start)),
      together_(together),
      dice_(seed) {
  for (const std::vector<DraftMove>& moves : UpdateMoves(problem_)) {
    for (const DraftMove& move : moves) steps_.push_back(move.stage);
  }
}

Placement RandomChanges::RollPlacement() {
  return possible_[Roll(static_cast<int>(possible_.size()))];
}

bool RandomChanges::Steps(int stage) const {
  return std::find(steps_.begin(), steps_.end(), stage) != steps_.end();
}

void RandomChanges::Change(DraftPlan& draft) {
  if (together_ == AnnealedStages::kNeighbours) return ChangeNeighbours(draft);
  const int index = Roll(static_cast<int>(draft.stages.size()));
  ChangeStage(index, draft.stages[index]);
}

// One worker as often as several.
void RandomChanges::ChangeNeighbours(DraftPlan& draft) {
  const int workers = WorkerCount(problem_.schedule);
  const int extent = Roll(4);
  const int first = extent == 2 ? 0 : Roll(workers);
  const int last = extent < 2 ? first : extent == 2 ? workers - 1 : first + Roll(workers - first);
  const KeyedGenerator dice = dice_;  // the same for each
  for (size_t index = 0; index < draft.stages.size(); ++index) {
    const int worker = problem_.schedule.worker_of_stage[index].value;
    if (worker < first || worker > last) continue;
    dice_ = dice;
    StageDraft& stage = draft.stages[index];
    if (Roll(2) == 0) {
      ChangePlaces(static_cast<int>(index), stage);
    } else {
      ChangeTimes(static_cast<int>(index), stage);
    }
  }
}

// Where the tensors of one layer go, or how many of them.
void RandomChanges::ChangePlaces(int index, StageDraft& stage) {
  constexpr int kShares = LowerMemoryOptions::kShares;
  if (stage.activations.empty()) return;
  const auto layer = static_cast<size_t>(Roll(static_cast<int>(stage.activations.size())));
  switch (Roll(8)) {
    case 0:
    case 1: {
      const Placement placement = RollPlacement();
      const bool goes = Steps(index) && placement != Placement::kRecompute;
      if (goes) stage.optimizer_state[layer] = placement;
      return;
    }
    case 2:
      stage.shares[layer] = 1 + Roll(kShares);
      return;
    case 3:
      stage.shares[layer] = std::clamp(stage.shares[layer] + 2 * Roll(2) - 1, 1, kShares);
      return;
    default:
      stage.activations[layer] = RollPlacement();
      stage.first_tensors[layer] = RollFirstTensors(index, static_cast<int>(layer));
      if (Roll(3) == 0) stage.shares[layer] = 1 + Roll(kShares);
  }
}

// Rather often all of them.
int RandomChanges::RollFirstTensors(int index, int layer) {
  const int first = problem_.partition.stages[index].begin;
  const std::vector<int> some = FirstTensorsOf(problem_.profile.layers[first + layer]);
  const int roll = Roll(static_cast<int>(some.size()) + 2);
  return roll < static_cast<int>(some.size()) ? some[roll] : 0;
}

// When they go and come, who steps them, how many go together.
void RandomChanges::ChangeTimes(int index, StageDraft& stage) {
  constexpr int kFew = 4;
  constexpr int kSome = 6;
  constexpr int kMostAhead = 10;
  if (tunes_streams_ && Roll(8) == 0) return ChangeStreams(stage);
  switch (Roll(8)) {
    case 0:
      stage.timing.forwards_to_leave = Roll(kSome);
      return;
    case 1:
      stage.timing.actions_to_come_back = Roll(kSome);
      return;
    case 2:
      stage.timing.actions_before_step = Roll(kFew);
      stage.timing.groups_ahead = Roll(kFew);
      return;
    case 3:
      (Roll(2) == 0 ? stage.recompute_run : stage.swap_run) = 1 + Roll(kFew);
      return;
    case 4:
      stage.layers_made_early = Roll(static_cast<int>(stage.activations.size()) + 1);
      stage.actions_made_early = Roll(kMostAhead);
      return;
    case 5:
      if (!Steps(index) || !host_steps_) return;
      if (Roll(2) == 0) {
        stage.groups_streamed = Roll(kFew);
        return;
      }
      stage.update = stage.update == UpdatePlace::kHost ? UpdatePlace::kDevice : UpdatePlace::kHost;
      return;
    case 6:
      stage.timing.groups_away_between_steps = Roll(2) == 0 ? SwapTiming::kAllGroups : Roll(kFew);
      stage.timing.home_beside_host = true;
      stage.timing.forwards_to_leave_home = 1 + Roll(2 * kFew);
      stage.timing.actions_to_come_home = Roll(3 * kFew);
      return;
    default:
      const int by = (1 + Roll(kFew)) * (2 * Roll(2) - 1);
      for (int& time : RollTimes(stage)) time = std::max(0, time + by);
  }
}

void RandomChanges::ChangeStage(int index, StageDraft& stage) {
  constexpr int kMostActions = 6;
  constexpr int kFewActions = 2;
  const bool steps = Steps(index);
  if (makes_early_ && Roll(decisions_) == 0) return ChangeMadeEarly(stage);
  if (tunes_streams_ && Roll(decisions_) == 0) return ChangeStreams(stage);
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
        stage.direct =
            stage.direct == DirectBackward::kDrop ? DirectBackward::kLeave : DirectBackward::kDrop;
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

void RandomChanges::ChangeMadeEarly(StageDraft& stage) {
  constexpr int kFewActions = 3;
  stage.layers_made_early = Roll(static_cast<int>(stage.activations.size()) + 1);
  stage.actions_made_early = Roll(kFewActions);
}

// How many groups of activations are on their way at once; sometimes all.
void RandomChanges::ChangeActivationStreams(StageDraft& stage) {
  constexpr int kDecisions = 8;
  SwapTiming& timing = stage.timing;
  if (Roll(kDecisions) == 0) {
    timing.groups_out_behind = timing.groups_in_before = SwapTiming::kAllGroups;
    return;
  }
  const int groups = Roll(kMostGroupsOnTheirWay + 1);
  (Roll(2) == 0 ? timing.groups_out_behind : timing.groups_in_before) = groups;
}

void RandomChanges::ChangeStreams(StageDraft& stage) {
  if (AnySwapped(stage.activations) && (!StreamsWeights(stage) || Roll(2) == 0)) {
    return ChangeActivationStreams(stage);
  }
  if (!StreamsWeights(stage)) return;
  if (StreamsGradients(stage) && Roll(2) == 0) {
    stage.timing.gradients_ahead = Roll(kMostGradientsAhead + 1);
  } else {
    stage.stream_buffers = 1 + Roll(kMostStreamBuffers);
  }
}

void RandomChanges::ChangeWeights(StageDraft& stage) {
  std::vector<Placement>& layers = Roll(2) == 0 ? stage.parameters : stage.gradients;
  Placement& layer = layers[Roll(static_cast<int>(layers.size()))];
  const Placement placement = RollPlacement();
  if (placement != Placement::kRecompute) layer = placement;
}

void RandomChanges::ChangeVersion(StageDraft& stage) {
  const Placement placement = RollPlacement();
  if (placement == Placement::kRecompute) return;
  stage.weight_versions[Roll(static_cast<int>(stage.weight_versions.size()))] = placement;
}

void RandomChanges::ChangeStep(StageDraft& stage) {
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
      if (!stage.state_times.in.empty()) return ShiftOne(stage.state_times.in, RollShift());
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

void RandomChanges::ChangeHome(StageDraft& stage) {
  constexpr int kMostForwards = 8;
  constexpr int kMostActions = 16;
  if (timed_) return ChangeStateTimes(stage);
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
void RandomChanges::ChangeStateTimes(StageDraft& stage) {
  const int by = RollShift();
  if (Roll(4) == 0) {
    int& away = stage.timing.groups_away_between_steps;
    away = std::clamp(away + (by > 0 ? 1 : -1), 0, static_cast<int>(stage.optimizer_state.size()));
    return;
  }
  std::vector<int>& times = RollTimes(stage);
  if (!times.empty()) ShiftOne(times, by);
}

std::vector<int>& RandomChanges::RollTimes(StageDraft& stage) {
  StateTimes& times = stage.state_times;
  if (!times.in.empty() && Roll(3) == 0) return times.in;
  return Roll(2) == 0 ? times.gone : times.back;
}

void RandomChanges::ShiftOne(std::vector<int>& times, int by) {
  int& time = times[Roll(static_cast<int>(times.size()))];
  time = std::max(0, time + by);
}

}  // namespace siphon
