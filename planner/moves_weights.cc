#include "planner/moves_weights.h"

namespace siphon {

bool MovesWeights(const PlannedGroup& planned) {
  const GroupKind kind = planned.group.kind;
  return (kind == GroupKind::kParameters || kind == GroupKind::kGradients) &&
         IsSwap(planned.choice.placement);
}

}  // namespace siphon
