#ifndef SIPHON_PLANNER_LOWERING_MAKE_GROUPS_H_
#define SIPHON_PLANNER_LOWERING_MAKE_GROUPS_H_

#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/stage_partition.h"

namespace siphon {

// The tensors of `kind` of the layers [layers.begin, layers.end) of the stage whose layers are
// `stage`.
//
// Activations: what these layers save. A tensor that two neighbouring layers save is the second
// one's (as in LayerCosts): nothing more is made of it behind that layer's forward, when its group
// may leave, and the first one's backward, too, finds it there. A recomputation starts from the
// boundary before the first layer, which stays, as part of the group where that layer saves it; it
// is nothing where the model begins.
//
// Requires: `layers` is not empty and within `stage`, and `stage` within the profile's layers.
// `first_tensors` other than 0: as for FirstTensorsGroup, of the activations of one layer.
TensorGroup GroupOf(const ModelProfile& profile, const StageRange& stage, GroupKind kind,
                    const StageRange& layers, int first_tensors = 0);

// Of the activations of one layer the tensors that it saves first, so many (TensorGroup).
// Requires: the same; `first_tensors` is one of FirstTensorsOf.
TensorGroup FirstTensorsGroup(const ModelProfile& profile, int layer, int first_tensors);

// Everything kept, in a group a layer and kind (GroupKind's order, then layers), without weight
// versions, which not every schedule has. Layers that have nothing of a kind have no group of it.
MemoryPlan KeepEverything(const ModelProfile& profile, const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_MAKE_GROUPS_H_
