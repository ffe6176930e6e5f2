#ifndef SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_
#define SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_

namespace siphon {

// While it lives, operators on this thread let go of what they would save for their backward. A
// forward pass then takes the same kernels as in training, with the same bits, and holds no more
// than one without gradients; its graph cannot be run. Nests.
//
// LibTorch asks its engine what to do with each tensor that is saved. The first object of the
// process sets an engine of our own, which differs in that answer alone.
class DiscardSavedTensors {
 public:
  DiscardSavedTensors();
  ~DiscardSavedTensors();
  DiscardSavedTensors(const DiscardSavedTensors&) = delete;
  DiscardSavedTensors& operator=(const DiscardSavedTensors&) = delete;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_
