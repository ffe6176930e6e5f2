#include "planner/lowering/lower_memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "planner/group_state.h"
#include "planner/lowering/check_lowering.h"
#include "planner/lowering/program_slots.h"
#include "planner/lowering/stage_options.h"
#include "planner/lowering/step_units.h"
#include "planner/status.h"
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
        beside_backwards_(slots_.ForwardsAndBehind()),
        steps_(StagesOf(schedule, WorkerId(worker)), plan, options, slots_) {
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
      const std::vector<PlannedGroup>& groups = plan.stages[stage.value].groups;
      for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
        AddGroup(plan.stages[stage.value], stage, GroupId(group));
      }
      steps_.AddStage(stage);
    }
  }

  std::vector<Action> Run() {
    std::vector<Action> lowered;
    for (int slot = 0; slot < slots_.size(); ++slot) {
      slots_.Write(slot, lowered);
      for (int place = slots_.begin(slot); place < slots_.end(slot); ++place) {
        const Action& action = slots_.program()[place];
        if (action.kind == ActionKind::kUpdate) WriteLeaving(lowered, place);
        if (action.kind == ActionKind::kStep) {
          steps_.Write(action, lowered);
        } else {
          lowered.push_back(action);
        }
      }
    }
    return lowered;
  }

 private:
  void AddGroup(const StagePlan& plan, StageId stage, GroupId group) {
    const PlannedGroup& planned = plan.groups[group.value];
    if (planned.choice.placement == Placement::kKeep) return;
    if (planned.group.kind == GroupKind::kOptimizerState) return;  // StepUnits
    if (planned.group.kind == GroupKind::kWeightVersions) {
      AddVersions(stage, group);
    } else if (planned.group.kind != GroupKind::kActivations) {
      if (WeightsOf(options_, stage) == WeightResidence::kLayerByLayer) {
        AddStreamed(plan, stage, group);
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
          AddSwap(plan, action);
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
    if (direct && DirectOf(options_, action.stage) == DirectBackward::kLeave) return;
    slots_.AddForward(life.forward, As(action, ActionKind::kDrop));
    if (direct || ahead == LowerMemoryOptions::kInBackward) return;
    slots_.AddMade(std::max(life.forward + 1, life.backward - ahead), life.backward,
                   As(action, ActionKind::kRecompute));
  }

  // How many groups of the stage's activations that are swapped come behind this one.
  static int SwappedBehind(const StagePlan& plan, GroupId group) {
    const StageRange& layers = plan.groups[group.value].group.layers;
    return static_cast<int>(
        std::count_if(plan.groups.begin(), plan.groups.end(), [&](const PlannedGroup& other) {
          return other.group.kind == GroupKind::kActivations && IsSwap(other.choice.placement) &&
                 other.group.layers.begin > layers.begin;
        }));
  }

  void AddSwap(const StagePlan& plan, const Action& action) {
    const ProgramSlots::Life life = slots_.LifeOf(action);
    if (life.forward == kNone || life.backward == kNone) return;
    const SwapTiming timing = TimingOf(options_, action.stage);
    const int behind = SwappedBehind(plan, action.group);
    const bool comes_before = behind < timing.groups_in_before;
    if (behind >= timing.groups_out_behind) {
      slots_.AddForward(life.forward, As(action, ActionKind::kSwapOut));
      slots_.AddForward(life.forward, As(action, ActionKind::kSwapOutEnd));
      const int back = std::max(life.forward + 1, life.backward - timing.actions_to_come_back);
      if (comes_before) slots_.AddComing(back, life.backward, As(action, ActionKind::kSwapIn));
      return;
    }
    if (timing.forwards_to_leave == 0) {
      if (life.backward > life.forward + 1) Move(action, life.forward + 1, timing, comes_before);
      return;
    }
    const bool turns = timing.turn == SwapTiming::Turn::kFirstStay;
    const std::vector<int>& ends = turns ? beside_backwards_ : slots_.forwards();
    const auto next = std::upper_bound(ends.begin(), ends.end(), life.forward);
    const auto past = std::lower_bound(next, ends.end(), life.backward);
    if (next == past) return;
    const auto waited = std::min<std::ptrdiff_t>(timing.forwards_to_leave, past - next) - 1;
    const int gone = *(next + waited);
    if (turns && IsBackTooSoon(life, gone, timing)) return;
    Move(action, gone, timing, comes_before);
  }

  // Whether the first backward behind all forwards needs it, or it would be back before anything
  // has used the room.
  bool IsBackTooSoon(const ProgramSlots::Life& life, int gone, const SwapTiming& timing) const {
    const int last_forward = slots_.forwards().back();
    const bool used = gone <= last_forward || life.backward - timing.actions_to_come_back > gone;
    return life.backward == last_forward + 1 || !used;
  }

  // The copy out has until slot `gone`; without `comes_before` the backward has it in by itself.
  void Move(const Action& action, int gone, const SwapTiming& timing, bool comes_before) {
    const ProgramSlots::Life life = slots_.LifeOf(action);
    const int back = std::max(gone + 1, life.backward - timing.actions_to_come_back);
    slots_.AddForward(life.forward, As(action, ActionKind::kSwapOut));
    slots_.AddLeaving(gone, As(action, ActionKind::kSwapOutEnd));
    if (comes_before) slots_.AddComing(back, life.backward, As(action, ActionKind::kSwapIn));
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
    const SwapTiming timing = TimingOf(options_, stash.stage);
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
    const int lead = TimingOf(options_, stage).actions_to_come_back;
    const int stay = std::max(2, TimingOf(options_, stage).actions_to_stay);
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
      steps_.LeaveBehind(last_use, action.stage, action.group);
      return;
    }
    if (kind == GroupKind::kParameters) {
      slots_.AddLeaving(last_use + 1, As(action, ActionKind::kDrop));
      return;
    }
    slots_.AddLeaving(last_use + 1, As(action, ActionKind::kSwapOut));
    slots_.AddLeaving(std::min(last_use + 2, slots_.last()), As(action, ActionKind::kSwapOutEnd));
  }

  // Whether backwards come to fewer others of the stage's gradients before these than come ahead.
  bool ComesAhead(const StagePlan& plan, StageId stage, const TensorGroup& group) const {
    if (group.kind != GroupKind::kGradients) return false;
    const auto comes_before = [&](const PlannedGroup& other) {
      return other.group.kind == group.kind && IsSwap(other.choice.placement) &&
             other.group.layers.begin > group.layers.begin;
    };
    return std::count_if(plan.groups.begin(), plan.groups.end(), comes_before) <
           TimingOf(options_, stage).gradients_ahead;
  }

  // Parameters or gradients that an action has only while it is at their layers; in a cell with
  // several actions of the stage, all of them have them.
  void AddStreamed(const StagePlan& plan, StageId stage, GroupId group) {
    const GroupKind kind = plan.groups[group.value].group.kind;
    const Action action{.stage = stage, .microbatch = kNoMicrobatch, .group = group};
    const std::vector<int> uses = slots_.UsesOf(stage, kind);
    const bool ahead = ComesAhead(plan, stage, plan.groups[group.value].group);
    // Where it comes in for that use; kNone: with its action.
    const auto comes_ahead = [&](size_t use) {
      const bool streams = slots_.ComputeUses(uses[use], stage, kind) == 1;
      const int free_from = use == 0 ? 0 : uses[use - 1] + 1;
      return ahead && streams && uses[use] > free_from ? uses[use] - 1 : kNone;
    };
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
      if (const int in = comes_ahead(use); in != kNone) {
        slots_.AddComing(in, slot, As(action, ActionKind::kSwapIn));
      }
      // What streams gives its memory back without being waited for.
      int next = slots_.last();
      if (use + 1 < uses.size()) {
        const int in = comes_ahead(use + 1);
        next = in == kNone ? uses[use + 1] : in;
      }
      slots_.AddLeaving(streams ? next : slot + 1, As(action, ActionKind::kSwapOutEnd));
    }
  }

  const int microbatches_;
  const LowerMemoryOptions& options_;
  const WeightStashes stashes_;
  std::map<int, std::vector<Action>> leaving_;  // [place of an UPDATE]
  ProgramSlots slots_;
  const std::vector<int> beside_backwards_;
  StepUnits steps_;
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
