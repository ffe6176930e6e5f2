#ifndef SIPHON_PLANNER_MEMORY_STAGE_PASSES_H_
#define SIPHON_PLANNER_MEMORY_STAGE_PASSES_H_

#include <vector>

#include "planner/memory/memory_estimate.h"
#include "planner/units.h"

namespace siphon {

// Memory of one microbatch in one stage at the fullest moment of a pass, everything of this
// microbatch and stage included but older weights and the gradients' accumulators.
struct PassMoment {
  Bytes activations;
  Bytes boundary;
  Bytes workspace;
  Bytes total() const { return activations + boundary + workspace; }
  friend bool operator==(const PassMoment&, const PassMoment&) = default;
};

// What one microbatch takes in one stage as pipeline/torch runs it: layer after layer, each with a
// graph of its own.
struct StagePasses {
  Bytes input;   // boundary with the stage before; 0 for the first
  Bytes output;  // boundary with the next stage; 0 for the last
  // What the output takes beside the stash; less than `output` where the backward needs it anyway.
  Bytes output_alone;
  Bytes stash;  // activations from F until B, or until I
  Bytes kept;   // from I until W
  PassMoment forward;
  PassMoment backward;
  PassMoment input_backward;
  PassMoment weight_backward;
  std::vector<LayerUse> layers;
};

// What the passes of one layer take for themselves, as its LayerMemory has it; 0 without one.
struct LayerWorkspace {
  Bytes forward;
  Bytes backward;
  Bytes input_backward;   // of I alone, where the backward is split
  Bytes weight_backward;  // of W alone
};
// In the job's precision: half of the float32 run's where that has 16 bits, but for the loss, which
// is computed in float32 always, and with what products of 16-bit matrices take beside
// (MatrixScratch).
LayerWorkspace WorkspaceOf(const MemoryInputs& inputs, int layer);

// What computing the layer again takes beside its first so many saved tensors until these are
// there. Of some tensors that may be more than of all: operations before the last of them take
// their own room while what they saved the first time, and what was not dropped, is still there.
// Requires: the layer has a LayerMemory with so many.
Bytes RemakeWorkspace(const MemoryInputs& inputs, int layer, int first_tensors);

// Requires: CheckMemoryInputs is OK.
std::vector<StagePasses> PassesOfStages(const MemoryInputs& inputs);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MEMORY_STAGE_PASSES_H_
