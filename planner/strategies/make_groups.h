#ifndef SIPHON_PLANNER_STRATEGIES_MAKE_GROUPS_H_
#define SIPHON_PLANNER_STRATEGIES_MAKE_GROUPS_H_

#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"

namespace siphon {

// The tensors of `kind` of the layers [layers.begin, layers.end) of the stage whose layers are
// `stage`.
//
// Activations: what these layers save; a tensor that the layer before them in the stage saves too
// counts there (as in LayerCosts). A recomputation starts from the boundary before the first layer,
// which adds nothing where that layer before has saved it, or where the model begins.
//
// Requires: `layers` is not empty and within `stage`, and `stage` within the profile's layers.
TensorGroup GroupOf(const ModelProfile& profile, const StageRange& stage, GroupKind kind,
                    const StageRange& layers);

// The activations of layers that are dropped together, while what is behind them in the stage is
// not dropped with them: a tensor that the layer behind saves too, or is computed from again,
// stays. So it counts as input.
TensorGroup DroppedGroupOf(const ModelProfile& profile, const StageRange& stage,
                           const StageRange& layers);

// Everything kept, in a group a layer and kind (GroupKind's order, then layers), without weight
// versions, which not every schedule has. Layers that have nothing of a kind have no group of it.
MemoryPlan KeepEverything(const ModelProfile& profile, const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MAKE_GROUPS_H_
