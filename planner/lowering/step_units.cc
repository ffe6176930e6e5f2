#include "planner/lowering/step_units.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/lowering/stage_options.h"
#include "planner/steps_on_host.h"

namespace siphon {
namespace {

constexpr int kNone = ProgramSlots::kNone;

Action OnGroup(StageId stage, ActionKind kind, GroupId group) {
  const MicrobatchId microbatch = kind == ActionKind::kStep ? MicrobatchId(0) : kNoMicrobatch;
  return {.stage = stage, .kind = kind, .microbatch = microbatch, .group = group};
}

// Parameters or gradients that are away, and not where the step of all their layers is.
bool ComesForStep(const StagePlan& plan, const PlannedGroup& planned) {
  const auto& [group, choice] = planned;
  const bool weights = group.kind == GroupKind::kParameters || group.kind == GroupKind::kGradients;
  if (!weights || !IsSwap(choice.placement)) return false;
  return choice.placement != Placement::kHostSwap || !AllStepOnHost(plan, group.layers);
}

// How many stand before the first with which something moves.
template <typename Units>
size_t FirstMoving(const Units& units) {
  return static_cast<size_t>(std::count_if(units.begin(), units.end(),
                                           [](const auto& unit) { return unit.moving.empty(); }));
}

size_t UnitsAtOnce(const SwapTiming& timing) {
  return static_cast<size_t>(std::max(0, timing.groups_ahead)) + 1;
}

int EntryOf(const std::vector<int>& times, std::ptrdiff_t group) {
  return times[std::min(group, std::ssize(times) - 1)];
}

void WriteMoves(StageId stage, ActionKind kind, const std::vector<GroupId>& groups,
                std::vector<Action>& lowered) {
  for (const GroupId group : groups) lowered.push_back(OnGroup(stage, kind, group));
}

}  // namespace

StepUnits::StepUnits(const std::vector<StageId>& stages, const MemoryPlan& plan,
                     const LowerMemoryOptions& options, ProgramSlots& slots)
    : plan_(plan), options_(options), slots_(slots), ends_(plan.stages.size()) {
  FindFirstStep(stages);
}

// Between steps groups that are away come in one at a time, to be read or written. There has to be
// room for that beside all that is home then: so all of it is back before the worker's first STEP,
// for which the first of them come in.
void StepUnits::FindFirstStep(const std::vector<StageId>& stages) {
  for (const StageId stage : stages) {
    may_be_home_ &= plan_.stages[stage.value].update == UpdatePlace::kDevice ||
                    TimingOf(options_, stage).home_beside_host;
    const int step = slots_.StepSlot(stage);
    if (step != kNone) first_step_ = std::min(first_step_, step);
  }
}

// The first units come in before the stage's STEP; weights that its last backward may still use,
// right before it.
void StepUnits::AddStage(StageId stage) {
  AddUnits(stage);
  const SwapTiming timing = TimingOf(options_, stage);
  const StateTimes times = StateTimesOf(options_, stage);
  const std::vector<Unit>& units = ends_[stage.value].units;
  const int slot = slots_.StepSlot(stage);
  if (slot == kNone) return;
  AddHome(stage);
  const size_t first = FirstMoving(units);
  for (size_t unit = first; unit < std::min(units.size(), first + UnitsAtOnce(timing)); ++unit) {
    const int ahead = times.in.empty()
                          ? timing.actions_before_step
                          : EntryOf(times.in, static_cast<std::ptrdiff_t>(unit - first));
    for (const GroupId group : units[unit].moving) {
      const int coming = group == units[unit].state ? slots_.ComingSlot(slot, ahead) : slot;
      // Behind what comes home, which steps first.
      slots_.AddComing(coming, slot + 1, OnGroup(stage, ActionKind::kSwapIn, group));
    }
  }
}

// Layer by layer, parameters and gradients that are away come in with the group of optimizer state
// that has all their layers; where there is none, for the stage's STEP as a whole.
void StepUnits::AddUnits(StageId stage) {
  const StagePlan& plan = plan_.stages[stage.value];
  StepEnd& end = ends_[stage.value];
  const bool layer_by_layer = WeightsOf(options_, stage) == WeightResidence::kLayerByLayer;
  std::vector<bool> taken(plan.groups.size(), false);
  int away = TimingOf(options_, stage).groups_away_between_steps;
  for (size_t id = 0; id < plan.groups.size(); ++id) {
    const auto& [state, choice] = plan.groups[id];
    if (state.kind != GroupKind::kOptimizerState) continue;
    Unit unit{.state = GroupId(static_cast<int>(id))};
    const bool beyond = IsSwap(choice.placement) && --away < 0;
    const bool moves = IsSwap(choice.placement) && !StepsOnHost(plan, plan.groups[id]);
    const bool is_home = beyond && moves && may_be_home_;
    if (moves) (is_home ? end.home : unit.moving).push_back(unit.state);
    for (size_t other = 0; layer_by_layer && other < plan.groups.size(); ++other) {
      const PlannedGroup& weights = plan.groups[other];
      const StageRange& layers = weights.group.layers;
      if (taken[other] || !ComesForStep(plan, weights)) continue;
      if (layers.begin < state.layers.begin || state.layers.end < layers.end) continue;
      taken[other] = true;
      unit.moving.push_back(GroupId(static_cast<int>(other)));
    }
    const bool on_host = plan.update == UpdatePlace::kHost;
    if (is_home || on_host || !unit.moving.empty()) end.units.push_back(std::move(unit));
  }
  std::stable_partition(end.units.begin(), end.units.end(),
                        [](const Unit& unit) { return unit.moving.empty(); });
  for (size_t id = 0; layer_by_layer && id < plan.groups.size(); ++id) {
    if (!taken[id] && ComesForStep(plan, plan.groups[id])) {
      AddWholeStep(stage, GroupId(static_cast<int>(id)));
    }
  }
}

void StepUnits::AddWholeStep(StageId stage, GroupId group) {
  const int slot = slots_.StepSlot(stage);
  if (slot == kNone) return;
  slots_.AddComing(slot, slot, OnGroup(stage, ActionKind::kSwapIn, group));
  LeaveBehind(slot, stage, group);
}

void StepUnits::LeaveBehind(int slot, StageId stage, GroupId group) {
  ends_[stage.value].behind_step.push_back(OnGroup(stage, ActionKind::kSwapOut, group));
  slots_.AddLeaving(slots_.GoneAfterStep(slot), OnGroup(stage, ActionKind::kSwapOutEnd, group));
}

// What is home between steps: gone only behind the worker's first forward, so that a forward by
// itself, as in an evaluation, has room beside it.
void StepUnits::AddHome(StageId stage) {
  const int step = first_step_;
  const SwapTiming timing = TimingOf(options_, stage);
  const StateTimes times = StateTimesOf(options_, stage);
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
    if (!times.back.empty()) ahead = EntryOf(times.back, group);
    slots_.AddLeaving(0, OnGroup(stage, ActionKind::kSwapOut, home[group]));
    slots_.AddLeaving(gone, OnGroup(stage, ActionKind::kSwapOutEnd, home[group]));
    slots_.AddComing(std::max(gone, slots_.ComingSlot(step, ahead)), step,
                     OnGroup(stage, ActionKind::kSwapIn, home[group]));
  }
}

// Behind each unit's STEP it leaves; when the one before it is gone, another one comes.
void StepUnits::Write(const Action& step, std::vector<Action>& lowered) const {
  const StageId stage = step.stage;
  const StepEnd& end = ends_[stage.value];
  const std::vector<Unit>& units = end.units;
  const size_t ahead = UnitsAtOnce(TimingOf(options_, stage));
  const size_t first = FirstMoving(units);
  for (size_t place = 0; place < units.size(); ++place) {
    lowered.push_back(OnGroup(stage, ActionKind::kStep, units[place].state));
    WriteMoves(stage, ActionKind::kSwapOut, units[place].moving, lowered);
    if (place > 0) WriteMoves(stage, ActionKind::kSwapOutEnd, units[place - 1].moving, lowered);
    if (place >= first && place + ahead < units.size()) {
      WriteMoves(stage, ActionKind::kSwapIn, units[place + ahead].moving, lowered);
    }
  }
  if (!units.empty()) WriteMoves(stage, ActionKind::kSwapOutEnd, units.back().moving, lowered);
  lowered.push_back(step);
  lowered.insert(lowered.end(), end.behind_step.begin(), end.behind_step.end());
}

}  // namespace siphon
