#include "pipeline/torch/parameters/initial_values.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/algorithm/container.h"
#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/memory/tensor_bytes.h"

namespace siphon {
namespace {

void Draw(const ParameterSpec& spec, uint64_t seed, const at::Tensor& value) {
  if (value.scalar_type() == at::kFloat && value.device().is_cpu()) {
    return FillInitialParameter(spec, seed, value);
  }
  const auto bytes = static_cast<size_t>(value.numel()) * sizeof(float);
  const size_t aligned = (bytes / kTensorAlignment + 1) * kTensorAlignment;
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kTensorAlignment, aligned), &std::free);
  TORCH_CHECK(memory != nullptr, "no ", aligned, " bytes for the initial value of ", spec.name);
  const at::Tensor wide = at::from_blob(memory.get(), value.sizes(), at::kFloat);
  FillInitialParameter(spec, seed, wide);
  value.copy_(wide);
}

void InitialiseOne(uint64_t seed, const StartOf& start) {
  HeldParameter& held = *start.parameter;
  const bool value = absl::c_linear_search(start.kinds, GroupKind::kParameters);
  const bool state = absl::c_linear_search(start.kinds, GroupKind::kOptimizerState);
  const bool master = state && held.master.defined();
  if (master) Draw(*held.first, seed, held.master);
  if (value && master) {
    held.value.copy_(held.master);
  } else if (value) {
    Draw(*held.first, seed, held.value);
  }
  if (state) {
    for (at::Tensor& moment : held.moments) moment.zero_();
  }
  if (!absl::c_linear_search(start.kinds, GroupKind::kGradients)) return;
  for (HeldParameter::Use& use : held.uses) {
    if (use.here) use.gradient.zero_();
  }
}

// The stream on which the calling thread computes on a device of that kind; none: the CPU has none.
class ThreadStream {
 public:
  explicit ThreadStream(at::Device device) : device_(device) {
    if (!device.is_cpu()) stream_ = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  }
  // Of another thread, from now on.
  void Take() const {
    if (!stream_.has_value()) return;
    const c10::impl::VirtualGuardImpl guard(device_.type());
    guard.setDevice(device_);
    guard.exchangeStream(*stream_);
  }

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;
};

// Largest first, so that no thread begins with one when the others have finished.
std::vector<StartOf> BySize(std::vector<StartOf> starts) {
  absl::c_stable_sort(starts, [](const StartOf& a, const StartOf& b) {
    return a.parameter->value.numel() > b.parameter->value.numel();
  });
  return starts;
}

}  // namespace

void Initialise(uint64_t seed, const std::vector<StartOf>& starts, int threads) {
  if (starts.empty()) return;
  const std::vector<StartOf> all = BySize(starts);
  const ThreadStream stream(all.front().parameter->value.device());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t index = next++; index < all.size(); index = next++) {
        InitialiseOne(seed, all[index]);
      }
    } catch (...) {
      next = all.size();
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  for (int helper = 1; helper < std::min<int>(threads, static_cast<int>(all.size())); ++helper) {
    helpers.emplace_back([&] {
      stream.Take();
      work();
    });
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace siphon
