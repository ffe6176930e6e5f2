#ifndef SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_
#define SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_

#include <memory>

#include "pipeline/torch/aten.h"

namespace siphon {

// What becomes of the tensors that operators save for their backward. LibTorch asks its engine for
// each of them; the first stage or scope of the process sets an engine of our own, which differs in
// that answer alone. Scopes hold for their thread and nest; without one, tensors are kept as
// LibTorch keeps them.

// A saved tensor as its operator holds it: destroyed when the operator needs it no more.
class HeldTensor {
 public:
  virtual ~HeldTensor() = default;
  // The tensor, with the memory and strides that it had. Throws as LibTorch does.
  virtual at::Tensor Restore() = 0;
};

class SavedTensorSink {
 public:
  virtual ~SavedTensorSink() = default;
  // Takes a tensor, without history, that an operator saves. Never null.
  virtual std::unique_ptr<HeldTensor> Save(at::Tensor tensor) = 0;
};

// Sets that engine, if that has not happened. Whoever may need it later calls this before the first
// backward pass of the process: with a device, the threads of LibTorch's own engine stay in the
// way.
void UseEngineWithSinks();

// While it lives, operators on this thread hand what they save to `sink`, which outlives it.
class CollectSavedTensors {
 public:
  explicit CollectSavedTensors(SavedTensorSink* sink);
  ~CollectSavedTensors();
  CollectSavedTensors(const CollectSavedTensors&) = delete;
  CollectSavedTensors& operator=(const CollectSavedTensors&) = delete;

 private:
  SavedTensorSink* const previous_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_SAVED_TENSORS_H_
