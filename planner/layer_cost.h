#ifndef SIPHON_PLANNER_LAYER_COST_H_
#define SIPHON_PLANNER_LAYER_COST_H_

#include <vector>

#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "planner/units.h"

namespace siphon {

// What one layer of a stage adds to its StageCost: the stage's activations then grow and shrink
// layer by layer.
struct LayerCost {
  Nanos forward;
  Nanos input_backward;
  Nanos weight_backward;
  Bytes stash;  // what its forward adds; a tensor that the layer behind saves too counts there
  // Between I and W; of a tensor that the layer before saves too, counted there.
  Bytes kept_for_weights;
  Nanos whole_backward;  // 0: what the other two take together
  Nanos optimizer;       // its part of the stage's optimizer step; 0 where not known
  // Part of `stash` that the layer before in the stage saves too: its own backward leaves that, and
  // the backward of the layer before frees it.
  Bytes shared_before;
  Nanos recompute;  // as in LayerProfile
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

// What a backward of the layer takes that is not split.
Nanos WholeBackward(const LayerCost& layer);

// As of a LayerProfile.
Nanos RecomputeTime(const LayerCost& layer);

// What the backward (B or I) of the stage's layer is the last one to use.
Bytes FreedByBackward(const std::vector<LayerCost>& stage, int layer);

// [stage][layer]: the layers of each stage. Requires: the partition is of a model with the
// profile's layers.
std::vector<std::vector<LayerCost>> LayerCosts(const ModelProfile& profile,
                                               const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LAYER_COST_H_
