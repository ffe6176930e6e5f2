#ifndef SIPHON_PLANNER_LAYER_MEMORY_H_
#define SIPHON_PLANNER_LAYER_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/tensor_spec.h"
#include "planner/units.h"

namespace siphon {

// Whose memory a saved tensor is. A tensor that one layer puts out and the next takes in may be
// saved by both, and is there once.
enum class SavedStorage {
  kOwn,
  kInput,   // the layer's input
  kOutput,  // the layer's output
};

// What becomes of a tensor of a float32 run when the job computes in bf16 or fp16.
enum class SavedPrecision {
  kAsComputed,  // two bytes an element
  kFloat32,     // stays: statistics of norms, the softmax of the loss
};

// Memory that a pass takes for itself at one moment: `per_sample` for each sample of the microbatch
// and `fixed` whatever their number (masks, gradients of the layer's parameters). Parts may be
// negative: a backward frees what was saved as it goes.
struct WorkspaceMoment {
  Bytes per_sample;
  Bytes fixed;
  friend bool operator==(const WorkspaceMoment&, const WorkspaceMoment&) = default;
};

// A tensor that a layer keeps from its forward pass for its backward.
struct SavedTensorSpec {
  std::string name;  // e.g. "attention.probabilities"; unique in its layer
  // Of one sample (no batch dimension), in a float32 run. Without dimensions: one number of the
  // whole microbatch, however many samples it has.
  TensorSpec sample;
  SavedStorage storage = SavedStorage::kOwn;
  SavedPrecision precision = SavedPrecision::kAsComputed;
  // A weight gradient is made of it: where the backward is split it stays until W.
  bool kept_for_weights = false;
  // Of one sample: operations (as LayerSpec::forward_flops) before it is saved.
  int64_t flops_before = 0;
  // Moments of the forward until the operation that saves it is through, beyond the inputs: what is
  // saved by then included.
  std::vector<WorkspaceMoment> forward_until;
  friend bool operator==(const SavedTensorSpec&, const SavedTensorSpec&) = default;
};

// What one layer takes beyond its parameters, in a float32 run.
struct LayerMemory {
  std::vector<SavedTensorSpec> saved;  // in the order of saving
  // Gradients that a split backward queues from I until W, one for each operation with weights.
  std::vector<SavedTensorSpec> queued;
  // Moments of the forward, beyond the inputs, the outputs and all that is saved; moments of the
  // whole backward, beyond all that is saved and the gradients of the outputs. The fullest counts;
  // none: the pass needs nothing more.
  std::vector<WorkspaceMoment> forward;
  std::vector<WorkspaceMoment> backward;
  // The same of I alone where the backward is split; it frees nothing that is saved until its end.
  std::vector<WorkspaceMoment> input_backward;
  friend bool operator==(const LayerMemory&, const LayerMemory&) = default;
};

// Of the fullest of `moments` for a microbatch of so many samples; 0 without any.
Bytes MostWorkspace(const std::vector<WorkspaceMoment>& moments, int64_t microbatch);

}  // namespace siphon

#endif  // SIPHON_PLANNER_LAYER_MEMORY_H_
