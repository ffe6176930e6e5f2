#include "planner/strategies/lower_memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "planner/status.h"
#include "planner/strategies/check_lowering.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

constexpr int kNone = -1;

bool IsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

bool Needs(ActionKind action, GroupKind group) {
  switch (action) {
    case ActionKind::kForward:
    case ActionKind::kBackwardInput:
      return group == GroupKind::kParameters;
    case ActionKind::kBackward:
    case ActionKind::kBackwardWeight:
      return group == GroupKind::kParameters || group == GroupKind::kGradients;
    case ActionKind::kStep:
      return group != GroupKind::kActivations;
    default:
      return false;
  }
}

// Puts memory actions into one worker's program. A slot is a place where they may stand: before a
// compute cell, before a STEP, and the end of the program.
class ProgramLowering {
 public:
  ProgramLowering(const Schedule& schedule, int worker, const MemoryPlan& plan,
                  const LowerMemoryOptions& options)
      : microbatches_(schedule.microbatches),
        program_(schedule.programs[worker]),
        options_(options),
        stashes_(FindWeightStashes(schedule, WorkerId(worker))),
        lives_(schedule.worker_of_stage.size() * static_cast<size_t>(schedule.microbatches)),
        ends_(schedule.worker_of_stage.size()) {
    FindSlots();
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
      const std::vector<PlannedGroup>& groups = plan.stages[stage.value].groups;
      for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
        AddGroup(stage, GroupId(group), groups[group]);
      }
      AddStepUnits(stage, plan.stages[stage.value]);
      AddStep(stage);
    }
  }

  std::vector<Action> Run() {
    std::vector<Action> lowered;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      WriteMemoryActions(lowered, before_[slot]);
      const int end = slot + 1 < slots_.size() ? slots_[slot + 1] : slots_[slot];
      for (int place = slots_[slot]; place < end; ++place) {
        const Action& action = program_[place];
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
  // Slots of a microbatch's forward and of the backward that needs what it has saved.
  struct Life {
    int forward = kNone;
    int backward = kNone;
  };
  struct Coming {
    int needed;  // slot of the use
    Action action;
  };
  // What stands in a slot, in this order: what makes room, what takes it, what the coming forward
  // does with its activations.
  struct SlotActions {
    std::vector<Action> leaving;
    std::vector<Coming> coming;
    std::vector<Action> forward;
  };
  // A group of optimizer state that steps by itself, and what comes in for that and leaves again.
  struct StepUnit {
    GroupId state;
    std::vector<GroupId> moving;
  };
  struct StepEnd {
    std::vector<StepUnit> units;
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
  Life& LifeOf(const Action& action) {
    return lives_[static_cast<size_t>(action.stage.value) * microbatches_ +
                  action.microbatch.value];
  }
  int LastSlot() const { return static_cast<int>(slots_.size()) - 1; }

  void FindSlots() {
    bool within_cell = false;
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      const bool is_slot = IsCompute(action.kind) || action.kind == ActionKind::kStep;
      // Messages at the beginning belong to no slot's action, but have to go somewhere.
      if ((is_slot || place == 0) && !within_cell) slots_.push_back(place);
      within_cell = action.pairing == Pairing::kWithNext;
      if (!is_slot) continue;
      const int slot = LastSlot();
      if (action.kind == ActionKind::kForward) {
        LifeOf(action).forward = slot;
        if (forwards_.empty() || forwards_.back() != slot) forwards_.push_back(slot);
      }
      if (IsBackward(action.kind)) LifeOf(action).backward = slot;
    }
    slots_.push_back(static_cast<int>(program_.size()));
    before_.resize(slots_.size());
  }

  void AddGroup(StageId stage, GroupId group, const PlannedGroup& planned) {
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
      for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
        const Action action{.stage = stage, .microbatch = MicrobatchId(microbatch), .group = group};
        if (planned.choice.placement == Placement::kRecompute) {
          AddDrop(action);
        } else {
          AddSwap(action);
        }
      }
    }
  }

  static Action As(Action action, ActionKind kind) {
    action.kind = kind;
    return action;
  }

  void AddDrop(const Action& action) {
    const Life life = LifeOf(action);
    if (life.forward == kNone || life.backward == kNone) return;
    const bool direct = life.backward == life.forward + 1;
    if (direct && DirectOf(action.stage) == DirectBackward::kLeave) return;
    before_[life.forward].forward.push_back(As(action, ActionKind::kDrop));
  }

  void AddSwap(const Action& action) {
    const Life life = LifeOf(action);
    if (life.forward == kNone || life.backward == kNone) return;
    const SwapTiming timing = TimingOf(action.stage);
    if (timing.forwards_to_leave == 0) {
      if (life.backward > life.forward + 1) Move(action, life.forward + 1, timing);
      return;
    }
    const auto next = std::upper_bound(forwards_.begin(), forwards_.end(), life.forward);
    const auto past = std::lower_bound(next, forwards_.end(), life.backward);
    if (next == past) return;
    const auto waited = std::min<std::ptrdiff_t>(timing.forwards_to_leave, past - next) - 1;
    Move(action, *(next + waited), timing);
  }

  // The copy out has until slot `gone`.
  void Move(const Action& action, int gone, const SwapTiming& timing) {
    const Life life = LifeOf(action);
    const int back = std::max(gone + 1, life.backward - timing.actions_to_come_back);
    before_[life.forward].forward.push_back(As(action, ActionKind::kSwapOut));
    before_[gone].leaving.push_back(As(action, ActionKind::kSwapOutEnd));
    before_[back].coming.push_back({life.backward, As(action, ActionKind::kSwapIn)});
  }

  // The last slot that is not behind the place.
  int SlotOf(int place) const {
    return static_cast<int>(std::upper_bound(slots_.begin(), slots_.end(), place) -
                            slots_.begin()) -
           1;
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
    const int update = SlotOf(stash.begin);
    const int used = SlotOf(stash.first_use);
    const int out = stash.born < 0 ? 0 : SlotOf(stash.born) + 1;
    int gone = update + 1;
    if (timing.forwards_to_leave > 1) {
      const auto next = std::upper_bound(forwards_.begin(), forwards_.end(), update);
      const auto waited =
          std::min<std::ptrdiff_t>(timing.forwards_to_leave, forwards_.end() - next);
      if (waited > 0) gone = *(next + waited - 1);
    }
    const int back = used - timing.actions_to_come_back;
    if (out > update || back <= update + 1) return;
    before_[out].leaving.push_back(As(action, ActionKind::kSwapOut));
    if (gone > update + 1 && gone < back) {
      before_[gone].leaving.push_back(As(action, ActionKind::kSwapOutEnd));
    } else {
      leaving_[stash.begin].push_back(As(action, ActionKind::kSwapOutEnd));
    }
    before_[back].coming.push_back({used, As(action, ActionKind::kSwapIn)});
  }

  // What has to be gone before the UPDATE at that place.
  void WriteLeaving(std::vector<Action>& lowered, int place) const {
    const auto found = leaving_.find(place);
    if (found == leaving_.end()) return;
    lowered.insert(lowered.end(), found->second.begin(), found->second.end());
  }

  // Slots of all actions that need such a group of the stage.
  std::vector<int> UsesOf(StageId stage, GroupKind kind) const {
    std::vector<int> uses;
    for (int slot = 0; slot < LastSlot(); ++slot) {
      for (int place = slots_[slot]; place < slots_[slot + 1]; ++place) {
        const Action& action = program_[place];
        if (action.stage != stage || !Needs(action.kind, kind)) continue;
        if (uses.empty() || uses.back() != slot) uses.push_back(slot);
      }
    }
    return uses;
  }

  // Parameters or gradients: in for each run of uses, away where the next one is far enough.
  void AddResident(StageId stage, GroupId group, GroupKind kind) {
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    const std::vector<int> uses = UsesOf(stage, kind);
    const int lead = TimingOf(stage).actions_to_come_back;
    const int stay = std::max(2, TimingOf(stage).actions_to_stay);
    for (size_t first = 0; first < uses.size();) {
      size_t last = first;
      // Between the two it leaves, and is gone, before it comes back.
      while (last + 1 < uses.size() && uses[last + 1] - lead <= uses[last] + stay) ++last;
      before_[std::max(0, uses[first] - lead)].coming.push_back(
          {uses[first], As(action, ActionKind::kSwapIn)});
      SendAway(action, kind, uses[last]);
      first = last + 1;
    }
  }

  // Where what leaves behind a STEP is gone: before the next compute action, which may need the
  // room, where the stage steps just in time; else at the end of the program.
  int GoneAfterStep(int step) const {
    for (int slot = step + 1; slot < LastSlot(); ++slot) {
      if (IsCompute(program_[slots_[slot]].kind)) return slot;
    }
    return LastSlot();
  }

  void SendAway(const Action& action, GroupKind kind, int last_use) {
    const Action& user = program_[slots_[last_use]];
    if (user.kind == ActionKind::kStep) {
      ends_[action.stage.value].behind_step.push_back(As(action, ActionKind::kSwapOut));
      before_[GoneAfterStep(last_use)].leaving.push_back(As(action, ActionKind::kSwapOutEnd));
      return;
    }
    if (kind == GroupKind::kParameters) {
      before_[last_use + 1].leaving.push_back(As(action, ActionKind::kDrop));
      return;
    }
    before_[last_use + 1].leaving.push_back(As(action, ActionKind::kSwapOut));
    before_[std::min(last_use + 2, LastSlot())].leaving.push_back(
        As(action, ActionKind::kSwapOutEnd));
  }

  int ComputeUses(int slot, StageId stage, GroupKind kind) const {
    int uses = 0;
    for (int place = slots_[slot]; place < slots_[slot + 1]; ++place) {
      const Action& action = program_[place];
      if (IsCompute(action.kind) && action.stage == stage && Needs(action.kind, kind)) ++uses;
    }
    return uses;
  }

  // Parameters or gradients that an action has only while it is at their layers; in a cell with
  // several actions of the stage, all of them have them.
  void AddStreamed(StageId stage, GroupId group, GroupKind kind) {
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    const std::vector<int> uses = UsesOf(stage, kind);
    for (size_t use = 0; use < uses.size(); ++use) {
      const int slot = uses[use];
      const int actions = ComputeUses(slot, stage, kind);
      if (actions == 0) continue;  // a STEP
      const bool streams = actions == 1;
      if (!streams) before_[slot].coming.push_back({slot, As(action, ActionKind::kSwapIn)});
      std::vector<Action>& goes = streams ? before_[slot].forward : before_[slot + 1].leaving;
      if (kind == GroupKind::kParameters) {
        goes.push_back(As(action, ActionKind::kDrop));
        continue;
      }
      goes.push_back(As(action, ActionKind::kSwapOut));
      // What streams gives its memory back without being waited for.
      const int next = use + 1 < uses.size() ? uses[use + 1] : LastSlot();
      before_[streams ? next : slot + 1].leaving.push_back(As(action, ActionKind::kSwapOutEnd));
    }
  }

  // Which groups step by themselves. Layer by layer, parameters and gradients that are away come in
  // with the group of optimizer state that has all their layers; where there is none, for the
  // stage's STEP as a whole.
  void AddStepUnits(StageId stage, const StagePlan& plan) {
    std::vector<StepUnit>& units = ends_[stage.value].units;
    const bool layer_by_layer = WeightsOf(stage) == WeightResidence::kLayerByLayer;
    std::vector<bool> taken(plan.groups.size(), false);
    for (size_t id = 0; id < plan.groups.size(); ++id) {
      const auto& [state, choice] = plan.groups[id];
      if (state.kind != GroupKind::kOptimizerState) continue;
      StepUnit unit{.state = GroupId(static_cast<int>(id))};
      if (IsSwap(choice.placement)) unit.moving.push_back(unit.state);
      for (size_t other = 0; layer_by_layer && other < plan.groups.size(); ++other) {
        const PlannedGroup& weights = plan.groups[other];
        const StageRange& layers = weights.group.layers;
        if (taken[other] || !ComesForStep(plan, weights)) continue;
        if (layers.begin < state.layers.begin || state.layers.end < layers.end) continue;
        taken[other] = true;
        unit.moving.push_back(GroupId(static_cast<int>(other)));
      }
      if (!unit.moving.empty()) units.push_back(std::move(unit));
    }
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
    const int slot = StepSlot(stage);
    if (slot == kNone) return;
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    before_[slot].coming.push_back({slot, As(action, ActionKind::kSwapIn)});
    ends_[stage.value].behind_step.push_back(As(action, ActionKind::kSwapOut));
    before_[GoneAfterStep(slot)].leaving.push_back(As(action, ActionKind::kSwapOutEnd));
  }

  int StepSlot(StageId stage) const {
    for (int slot = 0; slot < LastSlot(); ++slot) {
      const Action& action = program_[slots_[slot]];
      if (action.kind == ActionKind::kStep && action.stage == stage) return slot;
    }
    return kNone;
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
    const int slot = StepSlot(stage);
    if (slot == kNone) return;
    const size_t at_once = static_cast<size_t>(std::max(0, timing.groups_ahead)) + 1;
    for (size_t unit = 0; unit < std::min(units.size(), at_once); ++unit) {
      for (const GroupId group : units[unit].moving) {
        const int ahead = group == units[unit].state ? timing.actions_before_step : 0;
        before_[std::max(0, slot - ahead)].coming.push_back(
            {slot, OnState(stage, ActionKind::kSwapIn, group)});
      }
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
    for (size_t place = 0; place < units.size(); ++place) {
      lowered.push_back(OnState(stage, ActionKind::kStep, units[place].state));
      WriteMoves(lowered, stage, ActionKind::kSwapOut, units[place]);
      if (place > 0) WriteMoves(lowered, stage, ActionKind::kSwapOutEnd, units[place - 1]);
      if (place + ahead < units.size()) {
        WriteMoves(lowered, stage, ActionKind::kSwapIn, units[place + ahead]);
      }
    }
    if (!units.empty()) WriteMoves(lowered, stage, ActionKind::kSwapOutEnd, units.back());
  }

  // What is needed first comes first, of one backward the last layers.
  static auto OrderOf(const Coming& coming) {
    const Action& action = coming.action;
    const int group = action.microbatch == kNoMicrobatch ? action.group.value : -action.group.value;
    return std::make_tuple(coming.needed, action.stage, action.microbatch, group);
  }

  static void WriteMemoryActions(std::vector<Action>& lowered, SlotActions& slot) {
    std::sort(slot.coming.begin(), slot.coming.end(),
              [](const Coming& a, const Coming& b) { return OrderOf(a) < OrderOf(b); });
    lowered.insert(lowered.end(), slot.leaving.begin(), slot.leaving.end());
    for (const Coming& coming : slot.coming) lowered.push_back(coming.action);
    lowered.insert(lowered.end(), slot.forward.begin(), slot.forward.end());
  }

  const int microbatches_;
  const std::vector<Action>& program_;
  const LowerMemoryOptions& options_;
  const WeightStashes stashes_;
  std::map<int, std::vector<Action>> leaving_;  // [place of an UPDATE]
  std::vector<int> slots_;     // places, ascending; the last is the end of the program
  std::vector<int> forwards_;  // slots with a forward
  std::vector<Life> lives_;    // [stage, microbatch]
  std::vector<StepEnd> ends_;  // [stage]
  std::vector<SlotActions> before_;
};

}  // namespace

absl::StatusOr<Schedule> LowerMemoryPlan(Schedule schedule, const MemoryPlan& plan,
                                         const LowerMemoryOptions& options) {
  SIPHON_RETURN_IF_ERROR(CheckLowering(schedule, plan, options));
  std::vector<std::vector<Action>> programs;
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    programs.push_back(ProgramLowering(schedule, worker, plan, options).Run());
  }
  schedule.programs = std::move(programs);
  return schedule;
}

}  // namespace siphon
