#include "tests/pipeline/torch/other_device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/torch/aten.h"

namespace siphon {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

std::atomic<int64_t> calls = 0;
std::atomic<int64_t> waits = 0;
std::atomic<int64_t> reads = 0;

const OtherMemory* memory = nullptr;  // null: the CPU's

c10::DeviceIndex TheIndex() {
  return static_cast<c10::DeviceIndex>(memory == nullptr ? 0 : memory->index);
}

c10::Device TheDevice() { return {kType, TheIndex()}; }

void* Reach(void* address) {
  return memory == nullptr || address == nullptr ? address : memory->reach(address);
}

// Memory of the CPU, under the device's name.
c10::DataPtr Rename(c10::DataPtr memory) {
  void* const data = memory.get();
  auto* const owner = new c10::DataPtr(std::move(memory));
  return {data, owner, [](void* held) { delete static_cast<c10::DataPtr*>(held); }, TheDevice()};
}

class OtherAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (memory != nullptr) {
      void* const address = bytes == 0 ? nullptr : memory->take(bytes);
      return {address, address, [](void* taken) { memory->give(taken); }, TheDevice()};
    }
    return Rename(c10::GetAllocator(c10::DeviceType::CPU)->allocate(bytes));
  }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    default_copy_data(Reach(dest), Reach(const_cast<void*>(src)), count);
  }
};

class OtherGuard final : public c10::impl::NoOpDeviceGuardImpl<kType> {
 public:
  c10::Device exchangeDevice(c10::Device) const override { return TheDevice(); }
  c10::Device getDevice() const override { return TheDevice(); }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(TheIndex() + 1);
  }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, TheDevice());
  }
  // What was called is done.
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { ++waits; }
};

struct OtherHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(TheIndex() + 1);
  }
  c10::DeviceIndex getCurrentDevice() const override { return TheIndex(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
};

// One call of an operator: the device's tensors as the CPU's, over the same memory, and back.
class Call {
 public:
  at::Tensor ToCpu(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().type() != kType) {
      has_cpu_ = has_cpu_ || !tensor.unsafeGetTensorImpl()->is_wrapped_number();
      return tensor;
    }
    is_ours_ = true;
    c10::StorageImpl* const ours = tensor.storage().unsafeGetStorageImpl();
    auto known = storages_.find(ours);
    if (known == storages_.end()) {
      c10::Storage over(c10::Storage::use_byte_size_t(), ours->nbytes(),
                        c10::DataPtr(Reach(ours->mutable_data()), c10::DeviceType::CPU));
      known = storages_.emplace(ours, over).first;
      originals_.emplace(over.unsafeGetStorageImpl(), tensor.storage());
    }
    at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(known->second), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                       tensor.storage_offset());
    arguments_.emplace_back(alias, tensor);
    return alias;
  }
  void MakesOurs() { is_ours_ = true; }
  // Tensors of two devices; a number may come from anywhere.
  bool Mixes() const { return is_ours_ && has_cpu_; }
  at::Tensor ToOurs(const at::Tensor& tensor) const {
    if (!is_ours_ || !tensor.defined() || tensor.device().type() == kType) return tensor;
    for (const auto& [alias, argument] : arguments_) {
      if (alias.is_same(tensor)) return argument;
    }
    c10::StorageImpl* const made = tensor.storage().unsafeGetStorageImpl();
    const auto original = originals_.find(made);
    c10::Storage storage = original != originals_.end()
                               ? original->second  // a view
                               : c10::Storage(c10::Storage::use_byte_size_t(), made->nbytes(),
                                              Hold(tensor), c10::GetAllocator(kType));
    at::Tensor ours = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
    ours.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                      tensor.storage_offset());
    return ours;
  }

 private:
  // What the CPU has made: in memory of ours, or in its own, which is kept for as long.
  static c10::DataPtr Hold(const at::Tensor& tensor) {
    if (memory != nullptr) {
      const size_t bytes = tensor.storage().nbytes();
      c10::DataPtr ours = c10::GetAllocator(kType)->allocate(bytes);
      if (bytes > 0) std::memcpy(Reach(ours.get()), tensor.storage().data(), bytes);
      return ours;
    }
    auto* const owner = new c10::Storage(tensor.storage());
    return {owner->mutable_data(), owner,
            [](void* held) { delete static_cast<c10::Storage*>(held); }, TheDevice()};
  }

  bool is_ours_ = false;
  bool has_cpu_ = false;
  std::map<c10::StorageImpl*, c10::Storage> storages_;   // ours -> the CPU's over it
  std::map<c10::StorageImpl*, c10::Storage> originals_;  // and back
  std::vector<std::pair<at::Tensor, at::Tensor>> arguments_;
};

c10::IValue ArgumentToCpu(const c10::IValue& value, Call& call) {
  if (value.isTensor()) return call.ToCpu(value.toTensor());
  if (value.isTensorList()) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(call.ToCpu(tensor));
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor.has_value() ? std::optional(call.ToCpu(*tensor)) : std::nullopt);
    }
    return tensors;
  }
  if (value.isDevice() && value.toDevice().type() == kType) {
    call.MakesOurs();
    return c10::Device(c10::DeviceType::CPU);
  }
  return value;
}

c10::IValue ResultToOurs(const c10::IValue& value, const Call& call) {
  if (value.isTensor()) return call.ToOurs(value.toTensor());
  if (!value.isTensorList()) return value;
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(call.ToOurs(tensor));
  return tensors;
}

void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  ++calls;
  if (op.schema().name() == "aten::_local_scalar_dense") ++reads;
  Call call;
  const size_t arguments = op.schema().arguments().size();
  for (size_t at = stack->size() - arguments; at < stack->size(); ++at) {
    (*stack)[at] = ArgumentToCpu((*stack)[at], call);
  }
  TORCH_CHECK(!call.Mixes(), op.schema().name(),
              ": has tensors of the CPU and of the other device");
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  const size_t results = op.schema().returns().size();
  for (size_t at = stack->size() - results; at < stack->size(); ++at) {
    (*stack)[at] = ResultToOurs((*stack)[at], call);
  }
}

// A norm as CUDA has it: its vectors are of its input's type, and are widened by itself; the CPU's
// kernel would take float32 ones beside an input of 16 bits, too, which CUDA's refuses.
class NormVectors {
 public:
  NormVectors(const at::Tensor& input, const std::optional<at::Tensor>& weight,
              const std::optional<at::Tensor>& bias, Call& call)
      : type_(input.scalar_type()), weight_(Wide(weight, call)), bias_(Wide(bias, call)) {}
  const std::optional<at::Tensor>& weight() const { return weight_; }
  const std::optional<at::Tensor>& bias() const { return bias_; }
  at::Tensor Narrow(const at::Tensor& gradient) const {
    return gradient.defined() ? gradient.to(type_) : gradient;
  }

 private:
  std::optional<at::Tensor> Wide(const std::optional<at::Tensor>& vector, Call& call) const {
    if (!vector.has_value() || !vector->defined()) return vector;
    TORCH_CHECK(vector->scalar_type() == type_, "expected scalar type ", type_, " but found ",
                vector->scalar_type());
    return call.ToCpu(*vector).to(at::kFloat);
  }

  c10::ScalarType type_;
  std::optional<at::Tensor> weight_;
  std::optional<at::Tensor> bias_;
};

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three Norm(const at::Tensor& input, c10::SymIntArrayRef shape,
           const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
           double epsilon) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  ++calls;
  Call call;
  const NormVectors vectors(input, weight, bias, call);
  const auto [out, mean, deviation] = at::native_layer_norm_symint(
      call.ToCpu(input), shape, vectors.weight(), vectors.bias(), epsilon);
  return {call.ToOurs(out), call.ToOurs(mean), call.ToOurs(deviation)};
}

Three NormBackward(const at::Tensor& gradient, const at::Tensor& input, c10::SymIntArrayRef shape,
                   const at::Tensor& mean, const at::Tensor& deviation,
                   const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                   std::array<bool, 3> wanted) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  ++calls;
  Call call;
  const NormVectors vectors(input, weight, bias, call);
  const auto [of_input, of_weight, of_bias] = at::native_layer_norm_backward_symint(
      call.ToCpu(gradient), call.ToCpu(input), shape, call.ToCpu(mean), call.ToCpu(deviation),
      vectors.weight(), vectors.bias(), wanted);
  return {call.ToOurs(of_input), call.ToOurs(vectors.Narrow(of_weight)),
          call.ToOurs(vectors.Narrow(of_bias))};
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  ++calls;
  if (to.is_cpu()) ++reads;
  Call call;
  const at::Tensor target = call.ToCpu(to);
  target.copy_(call.ToCpu(from));
  return to;
}

// LibTorch starts its threads for devices at the first backward pass, whoever runs it: the device
// has to be known by then.
[[maybe_unused]] const bool registered = [] {
  static const auto* const guard = new OtherGuard();
  static const c10::impl::DeviceGuardImplRegistrar with_guard(kType, guard);
  c10::register_privateuse1_backend("other");
  c10::SetAllocator(kType, new OtherAllocator());
  at::RegisterPrivateUse1HooksInterface(new OtherHooks());
  return true;
}();

}  // namespace

void UseOtherMemory(const OtherMemory& other) {
  static OtherMemory used;
  used = other;
  memory = &used;
}

int64_t OtherDeviceCalls() { return calls; }
int64_t OtherDeviceWaits() { return waits; }
int64_t OtherDeviceReads() { return reads; }

}  // namespace siphon

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&siphon::RunOnCpu>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", TORCH_FN(siphon::CopyFrom));
  // Devices have a kernel of their own for it; without one LibTorch puts it together of others.
  library.impl("native_layer_norm", TORCH_FN(siphon::Norm));
  library.impl("native_layer_norm_backward", TORCH_FN(siphon::NormBackward));
}
