#ifndef SIPHON_PLANNER_LAYER_MEMORY_H_
#define SIPHON_PLANNER_LAYER_MEMORY_H_

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

// A tensor that a layer keeps from its forward pass for its backward.
struct SavedTensorSpec {
  std::string name;   // e.g. "attention.probabilities"; unique in its layer
  TensorSpec sample;  // of one sample (no batch dimension), in a float32 run
  SavedStorage storage = SavedStorage::kOwn;
  SavedPrecision precision = SavedPrecision::kAsComputed;
  // A weight gradient is made of it: where the backward is split it stays until W.
  bool kept_for_weights = false;
  friend bool operator==(const SavedTensorSpec&, const SavedTensorSpec&) = default;
};

// What one layer takes beyond its parameters, of one sample, in a float32 run.
struct LayerMemory {
  std::vector<SavedTensorSpec> saved;  // in the order of the forward pass
  // Gradients that a split backward queues from I until W, one for each operation with weights.
  std::vector<SavedTensorSpec> queued;
  // At the fullest moment of a pass: beyond inputs, outputs and what is saved (forward), or beyond
  // what is saved and the gradient of the output (backward; parameters' gradients count apart).
  Bytes forward_workspace;
  Bytes backward_workspace;
  friend bool operator==(const LayerMemory&, const LayerMemory&) = default;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_LAYER_MEMORY_H_
