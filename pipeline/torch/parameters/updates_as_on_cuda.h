#ifndef SIPHON_PIPELINE_TORCH_UPDATES_AS_ON_CUDA_H_
#define SIPHON_PIPELINE_TORCH_UPDATES_AS_ON_CUDA_H_

#include <cstdint>
#include <map>

#include "pipeline/torch/aten.h"

namespace siphon {

// beta^update, as the fused kernels of a device compute it in float32: CUDA's powf differs from the
// host's in the last bit at times, and so would every parameter. So the device is asked, for many
// updates at once.
//
// Thread-safety: one thread.
class PowersOnDevice {
 public:
  explicit PowersOnDevice(at::Device device) : device_(device) {}
  // `update` counts from 1. May wait for all that the calling thread's stream was given.
  float Of(double beta, int64_t update);

 private:
  const at::Device device_;
  int64_t first_ = 0;  // update that the tables begin with
  std::map<double, at::Tensor> tables_;
};

// One update of one parameter on the host, in place, with the bits that LibTorch 2.11's fused CUDA
// kernels give, which are not those of its CPU kernels: the same operations in the same order, each
// rounded once, with a fused multiply-add where the device has one (read from the kernels' machine
// code for sm_90; that for sm_75 to sm_86 has as many of each operation, that for sm_100 was not
// read; tests/gpu holds them against the device). All tensors: float32, contiguous, on the CPU, of
// as many elements. Work is shared by LibTorch's threads.
struct AdamOnHost {
  at::Tensor parameter, gradient, first_moment, second_moment;
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  float power1 = 0, power2 = 0;  // of beta1 and beta2: PowersOnDevice
  bool decoupled = false;        // AdamW
};
void UpdateAsOnCuda(const AdamOnHost& update);

struct SgdOnHost {
  at::Tensor parameter, gradient;
  at::Tensor momentum_buffer;  // undefined: no momentum
  double learning_rate = 0, momentum = 0, weight_decay = 0;
};
void UpdateAsOnCuda(const SgdOnHost& update);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_UPDATES_AS_ON_CUDA_H_
