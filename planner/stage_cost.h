#ifndef SIPHON_PLANNER_STAGE_COST_H_
#define SIPHON_PLANNER_STAGE_COST_H_

#include <vector>

#include "planner/action.h"
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
  // Beside `parameters` and `gradients`, as in LayerProfile: what a step on the host copies too.
  Bytes shared_parameters;
  Bytes shared_gradients;
  // Saved from F until B (or until I, where the backward is split); what two layers save, once.
  Bytes stash;
  Bytes kept_for_weights;  // what stays from I until W
  Bytes input;             // boundary with the previous stage; 0 for the first
  Bytes output;            // boundary with the next stage; 0 for the last
  Bytes forward_workspace;
  Bytes backward_workspace;  // of a backward that is not split
  // Of an I beside the stash, whatever it keeps for W meanwhile; of a W beside `kept_for_weights`.
  // Both 0: not known, taken to be `backward_workspace`.
  Bytes input_backward_workspace;
  Bytes weight_backward_workspace;
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

// What a backward takes that is not split.
Nanos WholeBackward(const StageCost& cost);

// Notes what the halves of a backward take. Requires: what a whole one takes is there.
void SetHalfWorkspaces(StageCost& cost, Bytes input_backward, Bytes weight_backward);

// What an F, B, I or W takes for itself. That of an I has room for what it keeps for W beyond the
// stash: where its activations have grown so much so far, that much less of it is left.
Bytes PassWorkspace(const StageCost& cost, ActionKind pass, Bytes grown = Bytes(0));

// Adds up the layers of each stage. Requires: the partition is of a model with the profile's
// layers.
std::vector<StageCost> StageCosts(const ModelProfile& profile, const StagePartition& partition);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STAGE_COST_H_
