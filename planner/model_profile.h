#ifndef SIPHON_PLANNER_MODEL_PROFILE_H_
#define SIPHON_PLANNER_MODEL_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/units.h"

namespace siphon {

// A tensor that a layer keeps for its backward.
struct SavedTensor {
  std::string name;  // e.g. "attn.softmax"; unique in its layer
  Bytes bytes;       // of one microbatch
  // Parts of LayerProfile::recompute, in a million, after which it is there again; not less than of
  // those before it. 0 for all: not known.
  int made_ppm = 0;
  // What computing the layer again takes beside this and the tensors before it until they are
  // there; 0: no more than a whole forward does, or not known.
  Bytes remake_workspace;
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

// What one layer costs for one microbatch, measured or calculated.
struct LayerProfile {
  std::string name;
  Nanos forward;
  Nanos input_backward;
  Nanos weight_backward;
  Nanos whole_backward;  // in one go, where measured; 0: what the other two take together
  // What its backward reads once more, where that was dropped and the output is there: a forward
  // but for what ends it. 0: not known, taken to be `forward`.
  Nanos recompute;
  Nanos optimizer;  // the whole step of the layer's parameters
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_state;
  // Beside `parameters` and `gradients`: of parameters that other layers use as well, which stay
  // where they are (PlanningProblem::held has their bytes). A step on the host copies them too.
  Bytes shared_parameters;
  Bytes shared_gradients;
  Bytes boundary;  // the output that the next layer takes; its gradient has the same size
  Bytes forward_workspace;
  Bytes backward_workspace;
  // Of I alone, and of W alone, beside `kept_for_weights`. Both 0: not known.
  Bytes input_backward_workspace;
  Bytes weight_backward_workspace;
  std::vector<SavedTensor> saved;  // in the order of saving
  // Parts of `saved` that are the layer's input and output themselves, which the layers before and
  // behind may have saved too; 0: none, or not known. Neither is larger than `saved`.
  Bytes saved_input;
  Bytes saved_output;
  // Part of `saved`, together with gradients queued for it, that stays until W when the backward is
  // split into I and W.
  Bytes kept_for_weights;
  friend bool operator==(const LayerProfile&, const LayerProfile&) = default;
};

// Immutable fact: a model's layers on one kind of device, with the sizes that they were taken at.
struct ModelProfile {
  std::string model;   // kind, for people
  std::string device;  // e.g. "AMD EPYC, 1 thread" or "A100"
  std::string source;  // "measured", "calculated", or where the figures were published
  int64_t microbatch = 1;
  std::vector<LayerProfile> layers;
  friend bool operator==(const ModelProfile&, const ModelProfile&) = default;
};

Bytes SavedBytes(const LayerProfile& layer);
// Of the tensor between two layers of one stage: what both of them saved, which is there once.
Bytes SavedByBoth(const LayerProfile& before, const LayerProfile& layer);
// What a backward takes that is not split.
Nanos WholeBackward(const LayerProfile& layer);
// What it takes to compute again all that the layer saves, never more than a forward.
Nanos RecomputeTime(const LayerProfile& layer);
// The same of the first so many of LayerProfile::saved, 1 ns at least. Requires: there are so many.
Nanos RecomputeTime(const LayerProfile& layer, int first_tensors);

// How many of its saved tensors, counted from the first, can be dropped or be away without the
// others, ascending: those that are made before the next one is. All of them is not listed.
std::vector<int> FirstTensorsOf(const LayerProfile& layer);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODEL_PROFILE_H_
