#ifndef SIPHON_PLANNER_STAGE_COST_H_
#define SIPHON_PLANNER_STAGE_COST_H_

#include <vector>

#include "planner/model_profile.h"
#include "planner/stage_partition.h"
#include "planner/units.h"

namespace siphon {

// What one stage costs: times and, unless said otherwise, bytes of one microbatch. The one place
// where planner, simulator and report learn what an action costs.
struct StageCost {
  Nanos forward;
  Nanos input_backward;
  Nanos weight_backward;
  Nanos whole_backward;  // in one go, where measured; 0: what the other two take together
  Nanos step;            // optimizer step
  Bytes parameters;      // of the stage, whatever the microbatch; also the next two
  Bytes gradients;
  Bytes optimizer_state;
  // Saved from F until B (or until I, where the backward is split); what two layers save, once.
  Bytes stash;
  Bytes kept_for_weights;  // what stays from I until W
  Bytes input;             // boundary with the previous stage; 0 for the first
  Bytes output;            // boundary with the next stage; 0 for the last
  Bytes forward_workspace;
  Bytes backward_workspace;
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

// What a backward takes that is not split.
Nanos WholeBackward(const StageCost& cost);

// Adds up the layers of each stage. Requires: the partition is of a model with the profile's
// layers.
std::vector<StageCost> StageCosts(const ModelProfile& profile, const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STAGE_COST_H_
