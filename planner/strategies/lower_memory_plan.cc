#include "planner/strategies/lower_memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "planner/group_state.h"
#include "planner/status.h"
#include "planner/strategies/check_lowering.h"
#include "planner/strategies/program_slots.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

constexpr int kNone = ProgramSlots::kNone;

// Puts memory actions into one worker's program.
class ProgramLowering {
 public:
  ProgramLowering(const Schedule& schedule, int worker, const MemoryPlan& plan,
                  const LowerMemoryOptions& options)
      : microbatches_(schedule.microbatches),
        options_(options),
        stashes_(FindWeightStashes(schedule, WorkerId(worker))),
        slots_(schedule, worker),
        ends_(schedule.worker_of_stage.size()) {
    const std::vector<StageId> stages = StagesOf(schedule, WorkerId(worker));
    FindFirstStep(plan, stages);
    for (const StageId stage : stages) {
      const std::vector<PlannedGroup>& groups = plan.stages[stage.value].groups;
      for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
        AddGroup(plan.stages[stage.value], stage, GroupId(group));
      }
      AddStepUnits(stage, plan.stages[stage.value]);
      AddStep(stage);
    }
  }

  std::vector<Action> Run() {
    std::vector<Action> lowered;
    for (int slot = 0; slot < slots_.size(); ++slot) {
      slots_.Write(slot, lowered);
      for (int place = slots_.begin(slot); place < slots_.end(slot); ++place) {
        const Action& action = slots_.program()[place];
        if (action.kind == ActionKind::kStep) WriteSteps(lowered, action.stage);
        if (action.kind == ActionKind::kUpdate) WriteLeaving(lowered, place);
        lowered.push_back(action);
        if (action.kind != ActionKind::kStep) continue;
        for (const Action& out : ends_[action.stage.value].behind_step) lowered.push_back(out);
      }
    }
    return lowered;
  }

 private:
  // A group of optimizer state that steps by itself, and what comes in for that and leaves again.
  struct StepUnit {
    GroupId state;
    std::vector<GroupId> moving;
  };
  struct StepEnd {
    std::vector<GroupId> home;        // optimizer state that is there between steps
    std::vector<StepUnit> units;      // those first with which nothing moves
    std::vector<Action> behind_step;  // copies out that the STEP was waited for with
  };

  SwapTiming TimingOf(StageId stage) const {
    return options_.timing.empty() ? SwapTiming{} : options_.timing[stage.value];
  }
  DirectBackward DirectOf(StageId stage) const {
    return options_.direct.empty() ? DirectBackward::kLeave : options_.direct[stage.value];
  }
  WeightResidence WeightsOf(StageId stage) const {
    return options_.weights.empty() ? WeightResidence::kWholeActions
                                    : options_.weights[stage.value];
  }
  void AddGroup(const StagePlan& plan, StageId stage, GroupId group) {
    const PlannedGroup& planned = plan.groups[group.value];
    if (planned.choice.placement == Placement::kKeep) return;
    if (planned.group.kind == GroupKind::kOptimizerState) return;  // AddStepUnits
    if (planned.group.kind == GroupKind::kWeightVersions) {
      AddVersions(stage, group);
    } else if (planned.group.kind != GroupKind::kActivations) {
      if (WeightsOf(stage) == WeightResidence::kLayerByLayer) {
        AddStreamed(stage, group, planned.group.kind);
      } else {
        AddResident(stage, group, planned.group.kind);
      }
    } else {
      const int ahead = MadeAhead(plan, planned.group);
      const int share = options_.shares.empty() ? LowerMemoryOptions::kShares
                                                : options_.shares[planned.group.layers.begin];
      for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
        if (!Goes(MicrobatchId(microbatch), share)) continue;
        const Action action{.stage = stage, .microbatch = MicrobatchId(microbatch), .group = group};
        if (planned.choice.placement == Placement::kRecompute) {
          AddDrop(action, ahead);
        } else {
          AddSwap(action);
        }
      }
    }
  }

  // How many compute actions before its backward the group is computed again. What that takes has
  // to be there then: of weights that are away at times nobody knows.
  int MadeAhead(const StagePlan& plan, const TensorGroup& group) const {
    if (options_.made_ahead.empty()) return LowerMemoryOptions::kInBackward;
    for (const auto& [other, choice] : plan.groups) {
      const bool weights =
          other.kind != GroupKind::kActivations && UsesGroups(ActionKind::kForward, other.kind);
      if (weights && IsSwap(choice.placement)) return LowerMemoryOptions::kInBackward;
    }
    return options_.made_ahead[group.layers.begin];
  }

  static Action As(Action action, ActionKind kind) {
    action.kind = kind;
    return action;
  }

  void AddDrop(const Action& action, int ahead) {
    const ProgramSlots::Life life = slots_.LifeOf(action);
    if (life.forward == kNone || life.backward == kNone) return;
    const bool direct = life.backward == life.forward + 1;
    if (direct && DirectOf(action.stage) == DirectBackward::kLeave) return;
    slots_.AddForward(life.forward, As(action, ActionKind::kDrop));
    if (direct || ahead == LowerMemoryOptions::kInBackward) return;
    slots_.AddMade(std::max(life.forward + 1, life.backward - ahead), life.backward,
                   As(action, ActionKind::kRecompute));
  }

  void AddSwap(const Action& action) {
    const ProgramSlots::Life life = slots_.LifeOf(action);
    if (life.forward == kNone || life.backward == kNone) return;
    const SwapTiming timing = TimingOf(action.stage);
    if (timing.forwards_to_leave == 0) {
      if (life.backward > life.forward + 1) Move(action, life.forward + 1, timing);
      return;
    }
    const std::vector<int>& forwards = slots_.forwards();
    const auto next = std::upper_bound(forwards.begin(), forwards.end(), life.forward);
    const auto past = std::lower_bound(next, forwards.end(), life.backward);
    if (next == past) return;
    const auto waited = std::min<std::ptrdiff_t>(timing.forwards_to_leave, past - next) - 1;
    Move(action, *(next + waited), timing);
  }

  // The copy out has until slot `gone`.
  void Move(const Action& action, int gone, const SwapTiming& timing) {
    const ProgramSlots::Life life = slots_.LifeOf(action);
    const int back = std::max(gone + 1, life.backward - timing.actions_to_come_back);
    slots_.AddForward(life.forward, As(action, ActionKind::kSwapOut));
    slots_.AddLeaving(gone, As(action, ActionKind::kSwapOutEnd));
    slots_.AddComing(back, life.backward, As(action, ActionKind::kSwapIn));
  }

  void AddVersions(StageId stage, GroupId group) {
    for (const WeightStash& stash : stashes_.stashes) {
      if (stash.stage != stage) continue;
      AddVersion(stash, {.stage = stage, .microbatch = stash.update, .group = group});
    }
  }

  // Leaves from behind the UPDATE that makes the version on, if its own one comes later than the
  // next slot, and is gone before its own one, or before the forwards behind it.
  void AddVersion(const WeightStash& stash, const Action& action) {
    const SwapTiming timing = TimingOf(stash.stage);
    const int update = slots_.SlotOf(stash.begin);
    const int used = slots_.SlotOf(stash.first_use);
    const int out = stash.born < 0 ? 0 : slots_.SlotOf(stash.born) + 1;
    int gone = update + 1;
    if (timing.forwards_to_leave > 1) {
      const std::vector<int>& forwards = slots_.forwards();
      const auto next = std::upper_bound(forwards.begin(), forwards.end(), update);
      const auto waited = std::min<std::ptrdiff_t>(timing.forwards_to_leave, forwards.end() - next);
      if (waited > 0) gone = *(next + waited - 1);
    }
    const int back = used - timing.actions_to_come_back;
    if (out > update || back <= update + 1) return;
    slots_.AddLeaving(out, As(action, ActionKind::kSwapOut));
    if (gone > update + 1 && gone < back) {
      slots_.AddLeaving(gone, As(action, ActionKind::kSwapOutEnd));
    } else {
      leaving_[stash.begin].push_back(As(action, ActionKind::kSwapOutEnd));
    }
    slots_.AddComing(back, used, As(action, ActionKind::kSwapIn));
  }

  // What has to be gone before the UPDATE at that place.
  void WriteLeaving(std::vector<Action>& lowered, int place) const {
    const auto found = leaving_.find(place);
    if (found == leaving_.end()) return;
    lowered.insert(lowered.end(), found->second.begin(), found->second.end());
  }

  // Parameters or gradients: in for each run of uses, away where the next one is far enough.
  void AddResident(StageId stage, GroupId group, GroupKind kind) {
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    const std::vector<int> uses = slots_.UsesOf(stage, kind);
    const int lead = TimingOf(stage).actions_to_come_back;
    const int stay = std::max(2, TimingOf(stage).actions_to_stay);
    for (size_t first = 0; first < uses.size();) {
      size_t last = first;
      // Between the two it leaves, and is gone, before it comes back.
      while (last + 1 < uses.size() && uses[last + 1] - lead <= uses[last] + stay) ++last;
      slots_.AddComing(std::max(0, uses[first] - lead), uses[first],
                       As(action, ActionKind::kSwapIn));
      SendAway(action, kind, uses[last]);
      first = last + 1;
    }
  }

  void SendAway(const Action& action, GroupKind kind, int last_use) {
    const Action& user = slots_.ActionAt(last_use);
    if (user.kind == ActionKind::kStep) {
      ends_[action.stage.value].behind_step.push_back(As(action, ActionKind::kSwapOut));
      slots_.AddLeaving(slots_.GoneAfterStep(last_use), As(action, ActionKind::kSwapOutEnd));
      return;
    }
    if (kind == GroupKind::kParameters) {
      slots_.AddLeaving(last_use + 1, As(action, ActionKind::kDrop));
      return;
    }
    slots_.AddLeaving(last_use + 1, As(action, ActionKind::kSwapOut));
    slots_.AddLeaving(std::min(last_use + 2, slots_.last()), As(action, ActionKind::kSwapOutEnd));
  }

  // Parameters or gradients that an action has only while it is at their layers; in a cell with
  // several actions of the stage, all of them have them.
  void AddStreamed(StageId stage, GroupId group, GroupKind kind) {
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    const std::vector<int> uses = slots_.UsesOf(stage, kind);
    for (size_t use = 0; use < uses.size(); ++use) {
      const int slot = uses[use];
      const int actions = slots_.ComputeUses(slot, stage, kind);
      if (actions == 0) continue;  // a STEP
      const bool streams = actions == 1;
      if (!streams) slots_.AddComing(slot, slot, As(action, ActionKind::kSwapIn));
      const bool drops = kind == GroupKind::kParameters;
      const Action goes = As(action, drops ? ActionKind::kDrop : ActionKind::kSwapOut);
      if (streams) {
        slots_.AddForward(slot, goes);
      } else {
        slots_.AddLeaving(slot + 1, goes);
      }
      if (drops) continue;
      // What streams gives its memory back without being waited for.
      const int next = use + 1 < uses.size() ? uses[use + 1] : slots_.last();
      slots_.AddLeaving(streams ? next : slot + 1, As(action, ActionKind::kSwapOutEnd));
    }
  }

  // Which groups step by themselves. Layer by layer, parameters and gradients that are away come in
  // with the group of optimizer state that has all their layers; where there is none, for the
  // stage's STEP as a whole.
  void AddStepUnits(StageId stage, const StagePlan& plan) {
    std::vector<StepUnit>& units = ends_[stage.value].units;
    const bool layer_by_layer = WeightsOf(stage) == WeightResidence::kLayerByLayer;
    std::vector<bool> taken(plan.groups.size(), false);
    int away = TimingOf(stage).groups_away_between_steps;
    for (size_t id = 0; id < plan.groups.size(); ++id) {
      const auto& [state, choice] = plan.groups[id];
      if (state.kind != GroupKind::kOptimizerState) continue;
      StepUnit unit{.state = GroupId(static_cast<int>(id))};
      if (IsSwap(choice.placement)) {
        const bool home = --away < 0 && may_be_home_;
        (home ? ends_[stage.value].home : unit.moving).push_back(unit.state);
      }
      for (size_t other = 0; layer_by_layer && other < plan.groups.size(); ++other) {
        const PlannedGroup& weights = plan.groups[other];
        const StageRange& layers = weights.group.layers;
        if (taken[other] || !ComesForStep(plan, weights)) continue;
        if (layers.begin < state.layers.begin || state.layers.end < layers.end) continue;
        taken[other] = true;
        unit.moving.push_back(GroupId(static_cast<int>(other)));
      }
      const std::vector<GroupId>& home = ends_[stage.value].home;
      const bool is_home = !home.empty() && home.back() == unit.state;
      if (is_home || !unit.moving.empty()) units.push_back(std::move(unit));
    }
    std::stable_partition(units.begin(), units.end(),
                          [](const StepUnit& unit) { return unit.moving.empty(); });
    for (size_t id = 0; layer_by_layer && id < plan.groups.size(); ++id) {
      if (!taken[id] && ComesForStep(plan, plan.groups[id])) {
        AddWholeStep(stage, GroupId(static_cast<int>(id)));
      }
    }
  }

  // Parameters or gradients that are away, and not where the step is.
  static bool ComesForStep(const StagePlan& plan, const PlannedGroup& planned) {
    const auto& [group, choice] = planned;
    const bool weights =
        group.kind == GroupKind::kParameters || group.kind == GroupKind::kGradients;
    if (!weights || !IsSwap(choice.placement)) return false;
    return plan.update == UpdatePlace::kDevice || choice.placement != Placement::kHostSwap;
  }

  void AddWholeStep(StageId stage, GroupId group) {
    const int slot = slots_.StepSlot(stage);
    if (slot == kNone) return;
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    slots_.AddComing(slot, slot, As(action, ActionKind::kSwapIn));
    ends_[stage.value].behind_step.push_back(As(action, ActionKind::kSwapOut));
    slots_.AddLeaving(slots_.GoneAfterStep(slot), As(action, ActionKind::kSwapOutEnd));
  }

  Action OnState(StageId stage, ActionKind kind, GroupId group) const {
    const MicrobatchId microbatch = kind == ActionKind::kStep ? MicrobatchId(0) : kNoMicrobatch;
    return {.stage = stage, .kind = kind, .microbatch = microbatch, .group = group};
  }

  // The first units come in before the stage's STEP; weights that its last backward may still
  // use, right before it.
  void AddStep(StageId stage) {
    const SwapTiming timing = TimingOf(stage);
    const std::vector<StepUnit>& units = ends_[stage.value].units;
    const int slot = slots_.StepSlot(stage);
    if (slot == kNone) return;
    AddHome(stage);
    const size_t first = FirstMoving(units);
    const size_t at_once = static_cast<size_t>(std::max(0, timing.groups_ahead)) + 1;
    for (size_t unit = first; unit < std::min(units.size(), first + at_once); ++unit) {
      for (const GroupId group : units[unit].moving) {
        const int ahead = group == units[unit].state ? timing.actions_before_step : 0;
        slots_.AddComing(std::max(0, slot - ahead), slot,
                         OnState(stage, ActionKind::kSwapIn, group));
      }
    }
  }

  static size_t FirstMoving(const std::vector<StepUnit>& units) {
    return static_cast<size_t>(std::count_if(
        units.begin(), units.end(), [](const StepUnit& unit) { return unit.moving.empty(); }));
  }

  // Between steps groups that are away come in one at a time, to be read or written. There has to
  // be room for that beside all that is home then: so all of it is back before the worker's first
  // STEP, for which the first of them come in.
  void FindFirstStep(const MemoryPlan& plan, const std::vector<StageId>& stages) {
    for (const StageId stage : stages) {
      may_be_home_ &= plan.stages[stage.value].update == UpdatePlace::kDevice;
      const int step = slots_.StepSlot(stage);
      if (step != kNone) first_step_ = std::min(first_step_, step);
    }
  }

  static int EntryOf(const std::vector<int>& times, std::ptrdiff_t group) {
    return times[std::min(group, std::ssize(times) - 1)];
  }

  // What is home between steps: gone only behind the worker's first forward, so that a forward by
  // itself, as in an evaluation, has room beside it.
  void AddHome(StageId stage) {
    const int step = first_step_;
    const SwapTiming timing = TimingOf(stage);
    const HomeTimes times = options_.home.empty() ? HomeTimes{} : options_.home[stage.value];
    const std::vector<GroupId>& home = ends_[stage.value].home;
    const std::ptrdiff_t groups = std::ssize(home);
    const std::vector<int>& forwards = slots_.forwards();
    for (std::ptrdiff_t group = 0; group < groups; ++group) {
      auto computed = std::max<std::ptrdiff_t>(
          1, (group + 1) * std::max(1, timing.forwards_to_leave_home) / groups);
      if (!times.gone.empty()) computed = std::max(1, EntryOf(times.gone, group));
      int gone = forwards.empty() ? 0 : forwards.back() + 1;
      if (computed < std::ssize(forwards)) gone = forwards[computed];
      gone = std::min(gone, step);
      const std::ptrdiff_t actions = std::max(0, timing.actions_to_come_home);
      auto ahead = static_cast<int>(actions - group * actions / groups);
      if (!times.ahead.empty()) ahead = std::max(0, EntryOf(times.ahead, group));
      slots_.AddLeaving(0, OnState(stage, ActionKind::kSwapOut, home[group]));
      slots_.AddLeaving(gone, OnState(stage, ActionKind::kSwapOutEnd, home[group]));
      slots_.AddComing(std::max(gone, step - ahead), step,
                       OnState(stage, ActionKind::kSwapIn, home[group]));
    }
  }

  void WriteMoves(std::vector<Action>& lowered, StageId stage, ActionKind kind,
                  const StepUnit& unit) const {
    for (const GroupId group : unit.moving) lowered.push_back(OnState(stage, kind, group));
  }

  // Behind each STEP the unit leaves; when the one before it is gone, another one comes.
  void WriteSteps(std::vector<Action>& lowered, StageId stage) const {
    const std::vector<StepUnit>& units = ends_[stage.value].units;
    const size_t ahead = static_cast<size_t>(std::max(0, TimingOf(stage).groups_ahead)) + 1;
    const size_t first = FirstMoving(units);
    for (size_t place = 0; place < units.size(); ++place) {
      lowered.push_back(OnState(stage, ActionKind::kStep, units[place].state));
      WriteMoves(lowered, stage, ActionKind::kSwapOut, units[place]);
      if (place > 0) WriteMoves(lowered, stage, ActionKind::kSwapOutEnd, units[place - 1]);
      if (place >= first && place + ahead < units.size()) {
        WriteMoves(lowered, stage, ActionKind::kSwapIn, units[place + ahead]);
      }
    }
    if (!units.empty()) WriteMoves(lowered, stage, ActionKind::kSwapOutEnd, units.back());
  }

  const int microbatches_;
  const LowerMemoryOptions& options_;
  const WeightStashes stashes_;
  std::map<int, std::vector<Action>> leaving_;  // [place of an UPDATE]
  ProgramSlots slots_;
  std::vector<StepEnd> ends_;                         // [stage]
  int first_step_ = std::numeric_limits<int>::max();  // slot
  // No stage of the worker steps on the host, which may have more to come in between steps.
  bool may_be_home_ = true;
};

}  // namespace

bool Goes(MicrobatchId microbatch, int share) {
  return int64_t{microbatch.value} * share % LowerMemoryOptions::kShares < share;
}

std::vector<Action> LowerProgram(const Schedule& schedule, WorkerId worker, const MemoryPlan& plan,
                                 const LowerMemoryOptions& options) {
  return ProgramLowering(schedule, worker.value, plan, options).Run();
}

absl::StatusOr<Schedule> LowerMemoryPlan(Schedule schedule, const MemoryPlan& plan,
                                         const LowerMemoryOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckLowering(schedule, plan, options));
  std::vector<std::vector<Action>> programs;
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    programs.push_back(LowerProgram(schedule, WorkerId(worker), plan, options));
  }
  schedule.programs = std::move(programs);
  return schedule;
}

}  // namespace siphon
