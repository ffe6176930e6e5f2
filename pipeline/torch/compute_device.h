#ifndef SIPHON_PIPELINE_TORCH_COMPUTE_DEVICE_H_
#define SIPHON_PIPELINE_TORCH_COMPUTE_DEVICE_H_

namespace siphon {

// Where a stage computes; no LibTorch in here.
struct ComputeDevice {
  // kExtension: what somebody has registered with LibTorch as its PrivateUse1 device.
  enum class Kind { kCpu, kCuda, kExtension };
  Kind kind = Kind::kCpu;
  int index = 0;  // among the visible ones; of the CPU there is one
  friend bool operator==(const ComputeDevice&, const ComputeDevice&) = default;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_COMPUTE_DEVICE_H_
