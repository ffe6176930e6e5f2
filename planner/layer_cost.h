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
  Bytes stash;  // a tensor that the layer before saves too counts there, in both of these
  Bytes kept_for_weights;
  Nanos whole_backward;  // 0: what the other two take together
  Nanos optimizer;       // its part of the stage's optimizer step; 0 where not known
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

// What a backward of the layer takes that is not split.
Nanos WholeBackward(const LayerCost& layer);

// [stage][layer]: the layers of each stage. Requires: the partition is of a model with the
// profile's layers.
std::vector<std::vector<LayerCost>> LayerCosts(const ModelProfile& profile,
                                               const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LAYER_COST_H_
