#include "pipeline/torch/device/cpu_rates.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "pipeline/torch/aten.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/device/step_clock.h"
#include "pipeline/torch/torch_stage.h"

namespace siphon {
namespace {

// Each measurement goes on so long, and no longer than one operation more.
constexpr int64_t kEnoughNs = 500'000'000;
constexpr int64_t kSide = 1'024;                 // 2 GFLOP a product
constexpr int64_t kNumbers = int64_t{32} << 20;  // 128 MiB a block
constexpr int64_t kOperations = 1'000;           // a sample: one alone is too short to time

// The median time of `operation`.
template <typename Operation>
int64_t MedianNs(const StepClock& clock, Operation&& operation) {
  operation();
  std::vector<int64_t> samples;
  for (int64_t all = 0; all < kEnoughNs; all += samples.back()) {
    const int64_t begin = clock.NowNs();
    operation();
    samples.push_back(std::max<int64_t>(1, clock.NowNs() - begin));
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

int64_t PerSecond(int64_t amount, int64_t ns) {
  return static_cast<int64_t>(static_cast<double>(amount) * 1e9 / static_cast<double>(ns));
}

CpuRates Measure(int threads) {
  const at::NoGradGuard no_gradients;
  const StepClock clock(threads);
  CpuRates rates;
  {
    const at::Tensor a = at::full({kSide, kSide}, 0.5);
    const at::Tensor b = at::full({kSide, kSide}, 0.25);
    at::Tensor product = at::empty({kSide, kSide});
    const int64_t ns = MedianNs(clock, [&] { at::mm_out(product, a, b); });
    rates.product_flops = PerSecond(2 * kSide * kSide * kSide, ns);
  }
  {
    const at::Tensor source = at::ones({kNumbers});
    at::Tensor target = at::zeros({kNumbers});
    const int64_t ns = MedianNs(clock, [&] { target.copy_(source); });
    const auto bytes = 2 * kNumbers * static_cast<int64_t>(sizeof(float));
    rates.copy_bandwidth = BytesPerSecond(PerSecond(bytes, ns));
  }
  at::Tensor number = at::zeros({1});
  const int64_t ns = MedianNs(clock, [&] {
    for (int64_t operation = 0; operation < kOperations; ++operation) number.add_(1);
  });
  rates.operation_overhead = Nanos(std::max<int64_t>(1, ns / kOperations));
  return rates;
}

}  // namespace

absl::StatusOr<CpuRates> MeasureCpuRates(int threads) {
  SetTorchThreads(threads);
  return CallTorch("measuring the processor", [threads] { return Measure(threads); });
}

}  // namespace siphon
