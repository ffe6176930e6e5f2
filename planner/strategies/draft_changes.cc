#include "planner/strategies/draft_changes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "planner/strategies/move_lists.h"
#include "planner/strategies/start_drafts.h"

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

// All, half of them, one.
std::vector<size_t> Counts(const std::vector<Placement>& layers, Placement from) {
  const auto all = static_cast<size_t>(std::count(layers.begin(), layers.end(), from));
  std::vector<size_t> counts;
  for (const size_t count : {all, all / 2, size_t{1}}) {
    if (count > 0 && (counts.empty() || counts.back() > count)) counts.push_back(count);
  }
  return counts;
}

class ChangeWriter {
 public:
  ChangeWriter(const PlanningProblem& problem, const DraftPlan& draft)
      : problem_(problem), draft_(draft), possible_(PossiblePlacements(problem, draft.mapping)) {}

  std::vector<DraftPlan> Write(WorkerId worker) {
    for (const StageId stage : StagesOf(problem_.schedule, worker)) {
      stage_ = stage.value;
      // What costs most first: computing again, then copies.
      for (const Placement from : {Placement::kRecompute, Placement::kNvmeSwap,
                                   Placement::kHostSwap, Placement::kPeerSwap, Placement::kKeep}) {
        Shifts(&StageDraft::activations, from);
      }
      for (const Placement from : {Placement::kHostSwap, Placement::kPeerSwap, Placement::kKeep}) {
        Shifts(&StageDraft::optimizer_state, from);
      }
      Timings();
      Runs();
      UpdateElsewhere();
    }
    return std::move(changes_);
  }

 private:
  StageDraft& Change() {
    changes_.push_back(draft_);
    return changes_.back().stages[stage_];
  }
  const StageDraft& Now() const { return draft_.stages[stage_]; }

  void Shifts(Layers layers, Placement from) {
    const bool state = layers == &StageDraft::optimizer_state;
    for (const Placement to : possible_) {
      if (to == from || (state && to == Placement::kRecompute)) continue;
      for (const size_t count : Counts(Now().*layers, from)) {
        Shift(Change().*layers, from, to, count);
      }
    }
  }

  void Step(int SwapTiming::*field, int by, int least) {
    if (Now().timing.*field + by >= least) Change().timing.*field += by;
  }

  bool Has(Placement placement) const {
    const std::vector<Placement>& layers = Now().activations;
    return std::find(layers.begin(), layers.end(), placement) != layers.end();
  }

  void Timings() {
    constexpr int kMostActions = 6;
    const auto swapped = [](const std::vector<Placement>& layers) {
      return std::any_of(layers.begin(), layers.end(), IsSwap);
    };
    if (swapped(Now().activations)) {
      for (const int by : {1, -1}) {
        if (Now().timing.actions_to_come_back + by <= kMostActions) {
          Step(&SwapTiming::actions_to_come_back, by, 0);
        }
        Step(&SwapTiming::forwards_to_leave, by, 0);
      }
    }
    if (swapped(Now().optimizer_state)) {
      for (const int by : {2, -1}) {
        if (Now().timing.actions_before_step + by <= kMostActions) {
          Step(&SwapTiming::actions_before_step, by, 0);
        }
        Step(&SwapTiming::groups_ahead, by, 0);
      }
    }
  }

  void Runs() {
    const auto vary = [this](int StageDraft::*run) {
      for (const int layers : {1, 2, 4, 0}) {
        if (Now().*run != layers) Change().*run = layers;
      }
    };
    if (std::any_of(Now().activations.begin(), Now().activations.end(), IsSwap)) {
      vary(&StageDraft::swap_run);
    }
    if (!Has(Placement::kRecompute)) return;
    vary(&StageDraft::recompute_run);
    const bool leaves = Now().direct == DirectBackward::kLeave;
    Change().direct = leaves ? DirectBackward::kDrop : DirectBackward::kLeave;
  }

  void UpdateElsewhere() {
    if (problem_.host_step == Nanos(0) || !ReachesHost(problem_, draft_.mapping)) return;
    const bool here = Now().update == UpdatePlace::kDevice;
    Change().update = here ? UpdatePlace::kHost : UpdatePlace::kDevice;
  }

  const PlanningProblem& problem_;
  const DraftPlan& draft_;
  const std::vector<Placement> possible_;
  int stage_ = 0;
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
                                 WorkerId worker) {
  std::vector<DraftPlan> changes = ChangeWriter(problem, draft).Write(worker);
  const MoveLists state = OptimizerStateMoves(problem, Placement::kHostSwap);
  // Optimizer state that no STEP uses stays where it is.
  if (state[worker.value].empty()) {
    std::erase_if(changes, [&](const DraftPlan& change) {
      for (const StageId stage : StagesOf(problem.schedule, worker)) {
        const StageDraft& changed = change.stages[stage.value];
        const StageDraft& now = draft.stages[stage.value];
        if (changed.optimizer_state != now.optimizer_state || changed.update != now.update) {
          return true;
        }
      }
      return false;
    });
  }
  std::erase(changes, draft);
  return changes;
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
      for (const size_t count : Counts(draft.stages[stage.value].activations, from)) {
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
