#ifndef SIPHON_TESTS_PIPELINE_TORCH_OTHER_DEVICE_H_
#define SIPHON_TESTS_PIPELINE_TORCH_OTHER_DEVICE_H_

#include <cstddef>
#include <cstdint>

#include "pipeline/torch/compute_device.h"

namespace siphon {

// A device beside the CPU for LibTorch (its PrivateUse1), made of the CPU's memory and kernels:
// what it computes has the CPU's bits, and what mixes its tensors with the CPU's is refused, as on
// a device. Its backward passes run on a thread of LibTorch's own, as a device's do. Whoever links
// other_device.cc has it.
inline constexpr ComputeDevice kOtherDevice{ComputeDevice::Kind::kExtension, 0};

// Where its memory is: addresses as tensors have them, which nobody else may be able to touch, and
// where the CPU's kernels reach that.
struct OtherMemory {
  void* (*take)(size_t bytes);  // throws where there is none
  void (*give)(void* address);
  void* (*reach)(void* address);  // of any byte of it
  // What LibTorch counts the device as; a process has no other one of its kind.
  int index = 0;
};
// From now on; before its first tensor. Else it has the CPU's.
void UseOtherMemory(const OtherMemory& memory);

// Operators that ran on it so far.
int64_t OtherDeviceCalls();
// How often somebody has waited for its stream so far.
int64_t OtherDeviceWaits();
// How often somebody has read of its memory what the CPU is to know, a number or a tensor: a device
// is through with all that it was given before it answers.
int64_t OtherDeviceReads();

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_TORCH_OTHER_DEVICE_H_
