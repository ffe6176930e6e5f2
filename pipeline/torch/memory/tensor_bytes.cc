#include "pipeline/torch/memory/tensor_bytes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

// LibTorch tells cuBLASLt how its operands are aligned, up to this, when that chooses a kernel. Its
// blocks start on 512 there.
constexpr uintptr_t kCudaAlignment = 256;

}  // namespace

at::ScalarType ToScalarType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kInt64:
      return at::kLong;
    case DType::kUInt8:
      return at::kByte;
  }
  SIPHON_CHECK(false, "every DType has a LibTorch type");
  return at::kFloat;
}

at::Device ToDevice(const ComputeDevice& device) {
  const auto index = static_cast<at::DeviceIndex>(device.index);
  switch (device.kind) {
    case ComputeDevice::Kind::kCpu:
      return at::kCPU;
    case ComputeDevice::Kind::kCuda:
      return {at::kCUDA, index};
    case ComputeDevice::Kind::kExtension:
      return {at::kPrivateUse1, index};
  }
  SIPHON_CHECK(false, "every kind of device is one of LibTorch's");
  return at::kCPU;
}

at::Tensor EmptyTensor(const TensorSpec& spec, at::Device device) {
  return at::empty(spec.shape, at::TensorOptions(ToScalarType(spec.dtype)).device(device));
}

at::Tensor TensorOver(const TensorSpec& spec, absl::Span<const std::byte> bytes) {
  // LibTorch has no tensor over constant memory; layers promise not to write to their inputs.
  return at::from_blob(const_cast<std::byte*>(bytes.data()), spec.shape,
                       at::TensorOptions(ToScalarType(spec.dtype)));
}

at::Tensor DataOn(at::Device device, const TensorSpec& spec, absl::Span<const std::byte> bytes) {
  const at::Tensor data = TensorOver(spec, bytes);
  if (device == data.device()) return data;
  at::Tensor copy = data.to(device);
  void* const memory = copy.data_ptr();
  const at::TensorOptions options = copy.options();
  return at::from_blob(
      memory, spec.shape, [copy = std::move(copy)](void*) {}, options, device);
}

absl::Span<std::byte> BytesOf(const at::Tensor& tensor) {
  SIPHON_CHECK(tensor.is_contiguous(), "only a contiguous tensor is one span of bytes");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kTensorAlignment == 0;
}

at::Tensor ContiguousAligned(const at::Tensor& tensor) {
  if (!tensor.is_contiguous()) return tensor.contiguous();  // a fresh block, so aligned
  const uintptr_t alignment = tensor.is_cuda() ? kCudaAlignment : kTensorAlignment;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  return begin % alignment == 0 ? tensor : tensor.clone();
}

bool Matches(const at::Tensor& tensor, const TensorSpec& spec) {
  return tensor.defined() && tensor.scalar_type() == ToScalarType(spec.dtype) &&
         tensor.sizes() == at::IntArrayRef(spec.shape);
}

std::string DescribeTensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::string type = c10::toString(tensor.scalar_type());
  for (const DType dtype :
       {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt64, DType::kUInt8}) {
    if (tensor.scalar_type() == ToScalarType(dtype)) type = std::string(DTypeName(dtype));
  }
  return absl::StrCat(type, "[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

}  // namespace siphon
