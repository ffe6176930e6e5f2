#ifndef SIPHON_PIPELINE_TORCH_TENSOR_BYTES_H_
#define SIPHON_PIPELINE_TORCH_TENSOR_BYTES_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/compute_device.h"
#include "planner/tensor_spec.h"

namespace siphon {

// Between the project's plain shapes and spans and LibTorch's tensors. They throw as LibTorch does.

// Every tensor handed to LibTorch starts on such a boundary: its kernels' bits depend on it.
inline constexpr size_t kTensorAlignment = 64;

at::ScalarType ToScalarType(DType dtype);
at::Device ToDevice(const ComputeDevice& device);
at::Tensor EmptyTensor(const TensorSpec& spec, at::Device device = at::kCPU);
// A tensor over memory of the host, whose owner keeps it alive and unchanged as long as the tensor
// lives.
at::Tensor TensorOver(const TensorSpec& spec, absl::Span<const std::byte> bytes);
// The step's data as layers read it: on the CPU the bytes themselves, as above, on a device a copy.
// To LibTorch it is somebody else's memory either way (its storage has no allocator), by which
// CollectedLayers knows that it stays where it is.
at::Tensor DataOn(at::Device device, const TensorSpec& spec, absl::Span<const std::byte> bytes);
// Requires: `tensor` is contiguous. An address and a size, where it is on a device.
absl::Span<std::byte> BytesOf(const at::Tensor& tensor);

bool IsAligned(const void* pointer);
// `tensor` if it is contiguous and starts on a boundary of 64 bytes, on a CUDA device of 256, else
// a copy that is and does. Differentiable.
at::Tensor ContiguousAligned(const at::Tensor& tensor);

bool Matches(const at::Tensor& tensor, const TensorSpec& spec);
// "F32[4, 128]", with LibTorch's own name for a type that is not a DType.
std::string DescribeTensor(const at::Tensor& tensor);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_TENSOR_BYTES_H_
