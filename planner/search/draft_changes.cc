#include "planner/search/draft_changes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/search/activation_streams.h"
#include "planner/search/made_early.h"
#include "planner/search/stream_steps.h"
#include "planner/search/time_state_home.h"
#include "planner/search/weight_streams.h"

namespace siphon {
namespace {

using Layers = std::vector<Placement> StageDraft::*;

// Sends `count` layers that are at `from` to `to`. Swapped layers are the first ones of a stage and
// recomputed ones the last (MPress, III.D), so the borders between places move.
void Shift(std::vector<Placement>& layers, Placement from, Placement to, size_t count) {
  const bool from_the_back = from != Placement::kRecompute && to != Placement::kHostSwap;
  for (size_t place = 0; place < layers.size() && count > 0; ++place) {
    Placement& layer = layers[from_the_back ? layers.size() - 1 - place : place];
    if (layer != from) continue;
    layer = to;
    --count;
  }
}

enum class Part { kAll, kHalf, kOne };
constexpr Part kParts[] = {Part::kAll, Part::kHalf, Part::kOne};

// How many layers the part is of those that are at `from`.
size_t CountOf(const std::vector<Placement>& layers, Placement from, Part part) {
  const auto all = static_cast<size_t>(std::count(layers.begin(), layers.end(), from));
  return part == Part::kAll ? all : part == Part::kHalf ? all / 2 : std::min<size_t>(all, 1);
}

// Makes the same change to some stages at once.
class ChangeWriter {
 public:
  ChangeWriter(const PlanningProblem& problem, const DraftPlan& draft, std::vector<StageId> stages,
               WeightSearch weights)
      : problem_(problem),
        draft_(draft),
        stages_(std::move(stages)),
        weights_(weights),
        possible_(PossiblePlacements(problem, draft.mapping)),
        stashes_(std::any_of(stages_.begin(), stages_.end(), [&](StageId stage) {
          return !draft.stages[stage.value].weight_versions.empty();
        })) {
    for (const std::vector<DraftMove>& moves : UpdateMoves(problem)) {
      for (const DraftMove& move : moves) steps_.push_back(StageId(move.stage));
    }
  }

  std::vector<DraftPlan> Write() {
    Timings();
    if (MakesEarly(draft_)) {
      for (DraftPlan& change : ChangesOfMadeEarly(draft_, stages_)) {
        changes_.push_back(std::move(change));
      }
    }
    // What costs most first: computing again, then copies.
    for (const Placement from : {Placement::kRecompute, Placement::kNvmeSwap, Placement::kHostSwap,
                                 Placement::kPeerSwap, Placement::kKeep}) {
      Shifts(&StageDraft::optimizer_state, from);
      if (IsSwap(from) || weights_ == WeightSearch::kAnywhere) {
        Shifts(&StageDraft::gradients, from);
        Shifts(&StageDraft::parameters, from);
      }
      if (stashes_) Shifts(&StageDraft::weight_versions, from);
      Shifts(&StageDraft::activations, from);
    }
    Runs();
    UpdateElsewhere();
    for (const Placement from :
         {Placement::kRecompute, Placement::kKeep, Placement::kHostSwap, Placement::kPeerSwap}) {
      TightSwaps(&StageDraft::activations, from);
      TightSwaps(&StageDraft::optimizer_state, from);
    }
    return std::move(changes_);
  }

 private:
  WorkerId WorkerOf(StageId stage) const { return problem_.schedule.worker_of_stage[stage.value]; }

  bool HasStep(StageId stage) const {
    return std::find(steps_.begin(), steps_.end(), stage) != steps_.end();
  }

  template <typename Change>
  void Try(const Change& change) {
    DraftPlan changed = draft_;
    for (const StageId stage : stages_) change(stage, changed.stages[stage.value]);
    const bool is_new = changed != draft_ && (changes_.empty() || changed != changes_.back());
    if (is_new) changes_.push_back(std::move(changed));
  }

  void Shifts(Layers layers, Placement from) {
    const bool activations = layers == &StageDraft::activations;
    // They go with an UPDATE, which the others do not; and a STEP has none of them.
    const bool steps = !activations && layers != &StageDraft::weight_versions;
    for (const Placement to : possible_) {
      if (to == from || (!activations && to == Placement::kRecompute)) continue;
      for (const Part part : kParts) {
        Try([&](StageId stage, StageDraft& draft) {
          // Optimizer state that no STEP uses stays where it is; weights that an UPDATE may, too.
          if (steps && !HasStep(stage)) return;
          Shift(draft.*layers, from, to, CountOf(draft.*layers, from, part));
        });
      }
    }
  }

  // Layers to a swap, and at once its copies right behind and before what uses the tensors: where
  // memory is scarce, only both together fit.
  void TightSwaps(Layers layers, Placement from) {
    const bool state = layers == &StageDraft::optimizer_state;
    for (const Placement to : possible_) {
      if (to == from || !IsSwap(to)) continue;
      for (const Part part : {Part::kAll, Part::kOne}) {
        Try([&](StageId stage, StageDraft& draft) {
          const size_t count = CountOf(draft.*layers, from, part);
          if (count == 0 || (state && !HasStep(stage))) return;
          Shift(draft.*layers, from, to, count);
          if (state) {
            draft.timing.actions_before_step = 0;
            draft.state_times.in.clear();
            draft.timing.groups_ahead = 0;
          } else {
            draft.timing.forwards_to_leave = 0;
            draft.timing.actions_to_come_back = 0;
          }
        });
      }
    }
  }

  // Changes the field where what it is for is swapped: activations, or what comes in for a step.
  void Step(Layers layers, int SwapTiming::*field, int by) {
    constexpr int kMost = 6;
    Try([&](StageId, StageDraft& draft) {
      const bool steps = layers == &StageDraft::optimizer_state && SendsWeights(draft);
      if (!steps && !AnySwapped(draft.*layers)) return;
      draft.timing.*field = std::clamp(draft.timing.*field + by, 0, kMost);
    });
  }

  void Timings() {
    for (const int by : {1, -1}) {
      Step(&StageDraft::activations, &SwapTiming::actions_to_come_back, by);
      Step(&StageDraft::activations, &SwapTiming::forwards_to_leave, by);
      if (stashes_) {
        Step(&StageDraft::weight_versions, &SwapTiming::actions_to_come_back, by);
        Step(&StageDraft::weight_versions, &SwapTiming::forwards_to_leave, by);
      }
      Step(&StageDraft::optimizer_state, &SwapTiming::actions_before_step, 2 * by);
      Step(&StageDraft::optimizer_state, &SwapTiming::groups_ahead, by);
    }
    HomeTimings();
    if (Streams(draft_)) Streaming();
    if (TunesStreams(draft_)) WeightStreams();
    if (StreamsActivations(draft_)) ActivationStreams();
    if (IsStateTimed(draft_)) TimedHome();
  }

  void WeightStreams() {
    for (const int by : {1, -1}) {
      Try([&](StageId, StageDraft& draft) {
        int& ahead = draft.timing.gradients_ahead;
        if (StreamsGradients(draft)) ahead = std::clamp(ahead + by, 0, kMostGradientsAhead);
      });
      Try([&](StageId, StageDraft& draft) {
        int& buffers = draft.stream_buffers;
        if (StreamsWeights(draft)) buffers = std::clamp(buffers + by, 1, kMostStreamBuffers);
      });
    }
  }

  // More or fewer groups of activations on their way at once; all, or few.
  void ActivationStreams() {
    for (const auto field : {&SwapTiming::groups_out_behind, &SwapTiming::groups_in_before}) {
      for (const int by : {1, -1}) {
        Try([&](StageId, StageDraft& draft) {
          if (!StreamsActivations(draft)) return;
          const int groups = std::min(draft.timing.*field, kMostGroupsOnTheirWay);
          draft.timing.*field = std::clamp(groups + by, 0, kMostGroupsOnTheirWay);
        });
      }
    }
    Try([&](StageId, StageDraft& draft) {
      if (!AnySwapped(draft.activations)) return;
      const bool stream = !StreamsActivations(draft);
      draft.timing.groups_out_behind = stream ? 2 : SwapTiming::kAllGroups;
      draft.timing.groups_in_before = stream ? 1 : SwapTiming::kAllGroups;
    });
  }

  // All of them, or the first one, or the last one.
  void TimedHome() {
    const auto shift = [](std::vector<int>& times, Part part, int by) {
      for (size_t place = 0; place < times.size(); ++place) {
        const bool concerned = part == Part::kAll || (part == Part::kHalf && place == 0) ||
                               (part == Part::kOne && place + 1 == times.size());
        if (concerned) times[place] = std::max(0, times[place] + by);
      }
    };
    for (const int by : {1, -1}) {
      for (const Part part : kParts) {
        for (const auto times : {&StateTimes::gone, &StateTimes::back, &StateTimes::in}) {
          Try([&](StageId, StageDraft& draft) { shift(draft.state_times.*times, part, by); });
        }
      }
    }
  }

  // More or less optimizer state beside the host's step.
  void Streaming() {
    for (const int by : {1, -1}) {
      Try([&](StageId, StageDraft& draft) {
        if (draft.update != UpdatePlace::kHost) return;
        const auto layers = static_cast<int>(draft.optimizer_state.size());
        draft.groups_streamed = std::clamp(draft.groups_streamed + by, 0, layers);
      });
    }
  }

  // Of optimizer state that is home between steps: how many groups are not, how long they have.
  void HomeTimings() {
    constexpr int kMostForwards = 8;
    constexpr int kMostActions = 16;
    const auto change = [&](int SwapTiming::*field, int by, int least, int most) {
      Try([&](StageId, StageDraft& draft) {
        int& value = draft.timing.*field;
        const bool home = draft.timing.groups_away_between_steps != SwapTiming::kAllGroups;
        if (home && AnySwapped(draft.optimizer_state)) value = std::clamp(value + by, least, most);
      });
    };
    for (const int by : {1, -1}) {
      change(&SwapTiming::actions_to_come_home, 2 * by, 0, kMostActions);
      change(&SwapTiming::forwards_to_leave_home, by, 1, kMostForwards);
      change(&SwapTiming::groups_away_between_steps, -by, 0, SwapTiming::kAllGroups - 1);
    }
  }

  void Runs() {
    for (const int run : {1, 2, 4, 0}) {
      Try([&](StageId, StageDraft& draft) {
        if (AnySwapped(draft.activations)) draft.swap_run = run;
      });
      Try([&](StageId, StageDraft& draft) {
        if (Recomputes(draft)) draft.recompute_run = run;
      });
    }
    for (const int run : {1, 2, 0}) {
      Try([&](StageId, StageDraft& draft) {
        if (SendsWeights(draft)) draft.weight_run = run;
      });
    }
    for (const WeightResidence weights :
         {WeightResidence::kLayerByLayer, WeightResidence::kWholeActions}) {
      Try([&](StageId stage, StageDraft& draft) {
        // With one stage, a worker uses it all the time.
        const bool alone = StagesOf(problem_.schedule, WorkerOf(stage)).size() == 1;
        if (SendsWeights(draft) && !alone) draft.weights = weights;
      });
    }
    for (const DirectBackward direct : {DirectBackward::kLeave, DirectBackward::kDrop}) {
      Try([&](StageId, StageDraft& draft) {
        if (Recomputes(draft)) draft.direct = direct;
      });
    }
  }

  static bool Recomputes(const StageDraft& draft) {
    return CountOf(draft.activations, Placement::kRecompute, Part::kOne) > 0;
  }

  void UpdateElsewhere() {
    if (!HostMayStep(problem_, draft_.mapping)) return;
    Try([&](StageId stage, StageDraft& draft) {
      if (HasStep(stage)) PutStepOnHost(draft);
    });
    for (const UpdatePlace place : {UpdatePlace::kHost, UpdatePlace::kDevice}) {
      Try([&](StageId stage, StageDraft& draft) {
        if (HasStep(stage)) draft.update = place;
      });
    }
  }

  const PlanningProblem& problem_;
  const DraftPlan& draft_;
  const std::vector<StageId> stages_;
  const WeightSearch weights_;
  const std::vector<Placement> possible_;
  const bool stashes_;          // weight versions
  std::vector<StageId> steps_;  // stages that step at their end
  std::vector<DraftPlan> changes_;
};

}  // namespace

std::vector<Placement> PossiblePlacements(const PlanningProblem& problem,
                                          const DeviceMapping& mapping) {
  std::vector<Placement> possible = {Placement::kKeep};
  const bool lends = !problem.topology.links.empty() && problem.schedule.replicas == 1;
  if (lends) possible.push_back(Placement::kPeerSwap);
  if (ReachesHost(problem, mapping)) {
    possible.push_back(Placement::kHostSwap);
    if (!problem.topology.drives.empty()) possible.push_back(Placement::kNvmeSwap);
  }
  possible.push_back(Placement::kRecompute);
  return possible;
}

std::vector<DraftPlan> ChangesOf(const PlanningProblem& problem, const DraftPlan& draft,
                                 const std::vector<StageId>& stages, WeightSearch weights) {
  return ChangeWriter(problem, draft, stages, weights).Write();
}

std::vector<DraftPlan> ChangesWithRoom(const PlanningProblem& problem, const DraftPlan& draft,
                                       WorkerId worker) {
  std::vector<DraftPlan> changes;
  const std::vector<Placement> possible = PossiblePlacements(problem, draft.mapping);
  const auto can = [&](Placement placement) {
    return std::find(possible.begin(), possible.end(), placement) != possible.end();
  };
  if (!can(Placement::kPeerSwap) || !can(Placement::kHostSwap)) return changes;
  const MoveLists state = OptimizerStateMoves(problem, Placement::kHostSwap);
  DraftPlan roomy = draft;
  for (int lender = 0; lender < WorkerCount(problem.schedule); ++lender) {
    if (lender == worker.value) continue;
    for (const DraftMove& move : state[lender]) {
      if (draft.stages[move.stage].optimizer_state[move.layer] == Placement::kKeep) {
        Apply(move, roomy);
      }
    }
  }
  for (const StageId stage : StagesOf(problem.schedule, worker)) {
    for (const Placement from : {Placement::kRecompute, Placement::kHostSwap}) {
      for (const Part part : kParts) {
        const size_t count = CountOf(draft.stages[stage.value].activations, from, part);
        if (count == 0) continue;
        DraftPlan& change = changes.emplace_back(roomy);
        Shift(change.stages[stage.value].activations, from, Placement::kPeerSwap, count);
      }
    }
  }
  return changes;
}

std::vector<DraftPlan> ExchangesOf(const PlanningProblem& problem, const DraftPlan& draft) {
  std::vector<DraftPlan> changes;
  if (problem.mapping || DeviceCount(problem.topology) == 0) return changes;
  const size_t workers = draft.mapping.device_of_worker.size();
  for (size_t a = 0; a < workers; ++a) {
    for (size_t b = a + 1; b < workers; ++b) {
      std::vector<DeviceId>& devices = changes.emplace_back(draft).mapping.device_of_worker;
      std::swap(devices[a], devices[b]);
    }
  }
  return changes;
}

}  // namespace siphon
