#include "planner/group_state.h"

#include <array>
#include <cstddef>
#include <iterator>

namespace siphon {
namespace {

constexpr std::array<absl::string_view, 11> kStateTexts = {"not made yet",
                                                           "to be dropped by its F",
                                                           "to leave behind its F",
                                                           "to leave under its F",
                                                           "resident",
                                                           "kept for its W",
                                                           "used up",
                                                           "on its way out",
                                                           "away",
                                                           "on its way in",
                                                           "dropped"};

constexpr GroupTransition kActivationTransitions[] = {
    {ActionKind::kDrop, GroupState::kAbsent, GroupState::kToDrop},
    {ActionKind::kSwapOut, GroupState::kAbsent, GroupState::kToSwap},
    {ActionKind::kForward, GroupState::kAbsent, GroupState::kResident},
    {ActionKind::kForward, GroupState::kToDrop, GroupState::kDropped},
    {ActionKind::kForward, GroupState::kToSwap, GroupState::kLeaving},
    {ActionKind::kSwapOutEnd, GroupState::kToSwap, GroupState::kToBeGone},
    {ActionKind::kForward, GroupState::kToBeGone, GroupState::kAway},
    {ActionKind::kSwapOut, GroupState::kResident, GroupState::kLeaving},
    {ActionKind::kSwapOutEnd, GroupState::kLeaving, GroupState::kAway},
    {ActionKind::kSwapIn, GroupState::kAway, GroupState::kArriving},
    {ActionKind::kSwapInEnd, GroupState::kArriving, GroupState::kResident},
    {ActionKind::kRecompute, GroupState::kDropped, GroupState::kResident},
    {ActionKind::kBackward, GroupState::kResident, GroupState::kUsed},
    {ActionKind::kBackward, GroupState::kArriving, GroupState::kUsed},
    {ActionKind::kBackward, GroupState::kDropped, GroupState::kUsed},
    {ActionKind::kBackward, GroupState::kAway, GroupState::kUsed},
    {ActionKind::kBackwardInput, GroupState::kResident, GroupState::kForWeights},
    {ActionKind::kBackwardInput, GroupState::kArriving, GroupState::kForWeights},
    {ActionKind::kBackwardInput, GroupState::kDropped, GroupState::kForWeights},
    {ActionKind::kBackwardInput, GroupState::kAway, GroupState::kForWeights},
    {ActionKind::kBackwardWeight, GroupState::kForWeights, GroupState::kUsed},
};

// UPDATE makes a version its own that until then was part of the parameters. Using it changes
// nothing but that it has arrived; the last use ends it.
constexpr GroupTransition kVersionTransitions[] = {
    {ActionKind::kSwapOut, GroupState::kAbsent, GroupState::kLeaving},
    {ActionKind::kSwapOut, GroupState::kResident, GroupState::kLeaving},
    {ActionKind::kSwapOutEnd, GroupState::kLeaving, GroupState::kAway},
    {ActionKind::kUpdate, GroupState::kAbsent, GroupState::kResident},
    {ActionKind::kUpdate, GroupState::kLeaving, GroupState::kLeaving},
    {ActionKind::kUpdate, GroupState::kAway, GroupState::kAway},
    {ActionKind::kSwapIn, GroupState::kAway, GroupState::kArriving},
    {ActionKind::kSwapInEnd, GroupState::kArriving, GroupState::kResident},
};

// Of what is there once. First those that parameters have beside the others, in front of an action
// that then has them only while it is at their layers; last the same of gradients.
constexpr GroupTransition kStaticTransitions[] = {
    {ActionKind::kDrop, GroupState::kArriving, GroupState::kToDrop},
    {ActionKind::kDrop, GroupState::kAway, GroupState::kToDrop},
    {ActionKind::kSwapIn, GroupState::kAway, GroupState::kArriving},
    {ActionKind::kSwapInEnd, GroupState::kArriving, GroupState::kResident},
    {ActionKind::kSwapOut, GroupState::kResident, GroupState::kLeaving},
    {ActionKind::kSwapOutEnd, GroupState::kLeaving, GroupState::kAway},
    {ActionKind::kDrop, GroupState::kResident, GroupState::kAway},
    {ActionKind::kSwapOut, GroupState::kArriving, GroupState::kToSwap},
    {ActionKind::kSwapOut, GroupState::kAway, GroupState::kToSwap},
};
constexpr size_t kMovesOfOneKind = 2;
constexpr size_t kMovesOfAll = std::size(kStaticTransitions) - 2 * kMovesOfOneKind;

}  // namespace

absl::string_view GroupStateText(GroupState state) {
  return kStateTexts[static_cast<size_t>(state)];
}

absl::Span<const GroupTransition> TransitionsOf(GroupKind kind) {
  const absl::Span<const GroupTransition> moves = kStaticTransitions;
  switch (kind) {
    case GroupKind::kActivations:
      return kActivationTransitions;
    case GroupKind::kParameters:
      return moves.subspan(0, kMovesOfOneKind + kMovesOfAll);
    case GroupKind::kGradients:
      return moves.subspan(kMovesOfOneKind);
    case GroupKind::kOptimizerState:
      return moves.subspan(kMovesOfOneKind, kMovesOfAll);
    case GroupKind::kWeightVersions:
      return kVersionTransitions;
  }
  return moves;
}

bool UsesGroups(ActionKind action, GroupKind group) {
  switch (group) {
    case GroupKind::kActivations:
      return IsCompute(action);
    case GroupKind::kParameters:
      return IsCompute(action) || action == ActionKind::kStep || action == ActionKind::kUpdate;
    case GroupKind::kGradients:
      return action == ActionKind::kBackward || action == ActionKind::kBackwardWeight ||
             action == ActionKind::kStep || action == ActionKind::kUpdate;
    case GroupKind::kOptimizerState:
      return action == ActionKind::kStep || action == ActionKind::kUpdate;
    case GroupKind::kWeightVersions:
      return IsCompute(action) || action == ActionKind::kUpdate;
  }
  return false;
}

}  // namespace siphon
