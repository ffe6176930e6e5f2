#include "planner/lowering/program_slots.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace siphon {
namespace {

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

}  // namespace

ProgramSlots::ProgramSlots(const Schedule& schedule, int worker)
    : microbatches_(schedule.microbatches),
      program_(schedule.programs[worker]),
      lives_(schedule.worker_of_stage.size() * static_cast<size_t>(schedule.microbatches)) {
  FindSlots();
  before_.resize(slots_.size());
}

void ProgramSlots::FindSlots() {
  bool within_cell = false;
  for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
    const Action& action = program_[place];
    const bool reduces =
        IsReduction(action.kind) && place > 0 && !IsReduction(program_[place - 1].kind);
    const bool is_slot = IsCompute(action.kind) || action.kind == ActionKind::kStep || reduces;
    // Messages at the beginning belong to no slot's action, but have to go somewhere.
    if ((is_slot || place == 0) && !within_cell) slots_.push_back(place);
    within_cell = action.pairing == Pairing::kWithNext;
    if (!is_slot) continue;
    const int slot = last();
    if (action.kind == ActionKind::kForward) {
      lives_[PlaceOf(action)].forward = slot;
      if (forwards_.empty() || forwards_.back() != slot) forwards_.push_back(slot);
    }
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      lives_[PlaceOf(action)].backward = slot;
    }
  }
  slots_.push_back(static_cast<int>(program_.size()));
}

int ProgramSlots::SlotOf(int place) const {
  return static_cast<int>(std::upper_bound(slots_.begin(), slots_.end(), place) - slots_.begin()) -
         1;
}

std::vector<int> ProgramSlots::ForwardsAndBehind() const {
  std::vector<int> slots = forwards_;
  const int behind = slots.empty() ? last() : slots.back() + 1;
  for (int slot = behind; slot < last(); ++slot) {
    if (IsCompute(ActionAt(slot).kind)) slots.push_back(slot);
  }
  return slots;
}

std::vector<int> ProgramSlots::UsesOf(StageId stage, GroupKind kind) const {
  std::vector<int> uses;
  for (int slot = 0; slot < last(); ++slot) {
    for (int place = begin(slot); place < end(slot); ++place) {
      const Action& action = program_[place];
      if (action.stage != stage || !Needs(action.kind, kind)) continue;
      if (uses.empty() || uses.back() != slot) uses.push_back(slot);
    }
  }
  return uses;
}

int ProgramSlots::ComputeUses(int slot, StageId stage, GroupKind kind) const {
  int uses = 0;
  for (int place = begin(slot); place < end(slot); ++place) {
    const Action& action = program_[place];
    if (IsCompute(action.kind) && action.stage == stage && Needs(action.kind, kind)) ++uses;
  }
  return uses;
}

int ProgramSlots::StepSlot(StageId stage) const {
  for (int slot = 0; slot < last(); ++slot) {
    const Action& action = ActionAt(slot);
    if (action.kind == ActionKind::kStep && action.stage == stage) return slot;
  }
  return kNone;
}

int ProgramSlots::ComingSlot(int step, int ahead) const {
  const bool reduces = step > 0 && IsReduction(ActionAt(step - 1).kind);
  return std::max(0, step - (reduces ? 1 : 0) - std::max(0, ahead));
}

int ProgramSlots::GoneAfterStep(int step) const {
  for (int slot = step + 1; slot < last(); ++slot) {
    if (IsCompute(ActionAt(slot).kind)) return slot;
  }
  return last();
}

bool ProgramSlots::ComesBefore(const Coming& a, const Coming& b) {
  const auto order = [](const Coming& coming) {
    const Action& action = coming.action;
    const int group = action.microbatch == kNoMicrobatch ? action.group.value : -action.group.value;
    return std::make_tuple(coming.needed, action.stage, action.microbatch, group);
  };
  return order(a) < order(b);
}

void ProgramSlots::WriteComing(std::vector<Coming> coming, std::vector<Action>& lowered) {
  std::sort(coming.begin(), coming.end(), ComesBefore);
  for (const Coming& one : coming) lowered.push_back(one.action);
}

void ProgramSlots::Write(int slot, std::vector<Action>& lowered) const {
  const SlotActions& actions = before_[slot];
  lowered.insert(lowered.end(), actions.leaving.begin(), actions.leaving.end());
  WriteComing(actions.coming, lowered);
  WriteComing(actions.made, lowered);
  lowered.insert(lowered.end(), actions.forward.begin(), actions.forward.end());
}

}  // namespace siphon
