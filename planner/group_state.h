#ifndef SIPHON_PLANNER_GROUP_STATE_H_
#define SIPHON_PLANNER_GROUP_STATE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planner/action.h"
#include "planner/memory_plan.h"

namespace siphon {

// Where the tensors of a group are while a program runs.
enum class GroupState : uint8_t {
  kAbsent,  // activations before their F, a weight version before the UPDATE that replaces it
  kToDrop,
  kToSwap,
  kToBeGone,  // activations that leave under their F
  kResident,
  kForWeights,  // activations between I and W
  kUsed,        // activations behind their B or W, a weight version behind its last use
  kLeaving,
  kAway,
  kArriving,
  kDropped,
};

// "on its way in", ...
absl::string_view GroupStateText(GroupState state);

// An action of that kind may come to a group that is `before`, and leaves it `after`.
struct GroupTransition {
  ActionKind kind;
  GroupState before;
  GroupState after;
};

// All that is allowed (planner/memory_plan.h says what it means). Of groups that are not
// activations, only how they move and become: using them changes nothing but that they have
// arrived.
absl::Span<const GroupTransition> TransitionsOf(GroupKind kind);

// That an action of this kind works with tensors of that kind.
bool UsesGroups(ActionKind action, GroupKind group);

}  // namespace siphon

#endif  // SIPHON_PLANNER_GROUP_STATE_H_
