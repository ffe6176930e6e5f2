#ifndef SIPHON_PIPELINE_TORCH_STEP_NORMS_H_
#define SIPHON_PIPELINE_TORCH_STEP_NORMS_H_

#include <cstddef>
#include <vector>

#include "pipeline/torch/aten.h"

namespace siphon {

// The norms of a stage's gradients in one step, a float32 for each parameter. Those of a device
// stay there until somebody reads them: each read waits for all that the device was given before,
// and the last backward of a step makes as many norms as the stage has parameters.
//
// Thread-safety: one thread. Throws as LibTorch does.
class StepNorms {
 public:
  StepNorms() = default;
  StepNorms(size_t parameters, at::Device device);

  void Forget();  // a step begins
  // The gradient may change, or go, from then on.
  void Note(size_t parameter, const at::Tensor& gradient);
  bool Has(size_t parameter) const { return noted_[parameter]; }
  // [parameter]; of those that were noted.
  std::vector<float> Read() const;

 private:
  std::vector<bool> noted_;
  std::vector<float> here_;
  at::Tensor on_device_;  // [parameters], float32; undefined: the CPU's are in `here_`
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_STEP_NORMS_H_
