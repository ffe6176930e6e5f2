#include "planner/baselines/virtual_memory_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/baselines/server_rates.h"
#include "planner/status.h"

namespace siphon {
namespace {

enum class PagingMode { kOnDemand, kOneAhead };

struct VirtualMemory {
  int64_t in_percent = 100;  // of the rate of copies
  int64_t out_percent = 100;
  PagingMode paging = PagingMode::kOnDemand;
};

// What one layer does at once.
struct PagedOperation {
  Bytes in;
  Nanos time;
  Bytes out;
  Bytes room;
};

// In the order in which a device runs them; the first update is at `first_update`.
struct PagedStep {
  std::vector<PagedOperation> operations;
  size_t first_update = 0;
};

Bytes StateOf(const LayerProfile& layer) {
  return layer.parameters + layer.gradients + layer.optimizer_state;
}

PagedStep OperationsOf(const BaselineProblem& problem) {
  const std::vector<LayerProfile>& layers = problem.profile.layers;
  PagedStep step;
  for (int microbatch = 0; microbatch < problem.microbatches; ++microbatch) {
    for (const LayerProfile& layer : layers) {
      const Bytes saved = SavedBytes(layer);
      step.operations.push_back({.in = layer.parameters,
                                 .time = layer.forward,
                                 .out = layer.parameters + saved,
                                 .room = layer.parameters + saved + layer.forward_workspace});
    }
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      const Bytes both = layer->parameters + layer->gradients;
      const Bytes in = both + SavedBytes(*layer);
      step.operations.push_back({.in = in,
                                 .time = WholeBackward(*layer),
                                 .out = both,
                                 .room = in + layer->backward_workspace});
    }
  }
  step.first_update = step.operations.size();
  for (const LayerProfile& layer : layers) {
    const Bytes state = StateOf(layer);
    step.operations.push_back({.in = state, .time = layer.optimizer, .out = state, .room = state});
  }
  return step;
}

// All on the device.
BaselineStep WithoutPaging(const BaselineProblem& problem, Nanos sum_gradients) {
  const ProfileTotals totals = TotalsOf(problem.profile);
  BaselineStep step;
  step.computing = (totals.forward + totals.backward) * problem.microbatches;
  step.step_time = step.computing + sum_gradients + totals.optimizer;
  step.device = totals.parameters + totals.gradients + totals.optimizer_state + totals.saved +
                totals.largest_workspace;
  return step;
}

BytesPerSecond Percent(BytesPerSecond rate, int64_t percent) {
  if (rate == BytesPerSecond(0)) return rate;
  return BytesPerSecond(std::max<int64_t>(1, rate.value / 100 * percent));
}

BaselineStep WithPaging(const BaselineProblem& problem, const ServerRates& rates,
                        const VirtualMemory& memory, Nanos sum_gradients) {
  const bool ahead = memory.paging == PagingMode::kOneAhead;
  const BytesPerSecond in_rate =
      Percent(ahead ? rates.from_host_both : rates.from_host, memory.in_percent);
  const BytesPerSecond out_rate =
      Percent(ahead ? rates.to_host_both : rates.to_host, memory.out_percent);
  const PagedStep paged = OperationsOf(problem);
  BaselineStep step;
  BaselineLane in;
  BaselineLane device;  // its computation, and evictions, for which it waits
  Nanos begun;          // of the operation before this one
  for (size_t index = 0; index < paged.operations.size(); ++index) {
    const PagedOperation& operation = paged.operations[index];
    if (index == paged.first_update) device.Run(Nanos(0), sum_gradients);
    const Nanos ready = ahead ? begun : device.end();
    const Nanos there = in.Run(ready, TimeFor(operation.in, in_rate));
    begun = std::max(device.end(), there);
    device.Run(there, operation.time);
    device.Run(Nanos(0), TimeFor(operation.out, out_rate));
    step.from_host += operation.in;
    step.to_host += operation.out;
    step.device = std::max(step.device, operation.room * (ahead ? 2 : 1));
  }
  const ProfileTotals totals = TotalsOf(problem.profile);
  step.computing = (totals.forward + totals.backward) * problem.microbatches;
  step.step_time = device.end();
  const int64_t copies = rates.devices;
  step.host =
      (totals.parameters + totals.gradients + totals.optimizer_state + totals.saved) * copies;
  step.to_host = step.to_host * copies;
  step.from_host = step.from_host * copies;
  return step;
}

absl::StatusOr<BaselineStep> VirtualMemoryStep(const BaselineProblem& problem,
                                               const VirtualMemory& memory) {
  SIPHON_RETURN_IF_ERROR(CheckBaselineProblem(problem));
  SIPHON_ASSIGN_OR_RETURN(const ServerRates rates, RatesOf(problem.topology));
  const Bytes gradients = TotalsOf(problem.profile).gradients;
  const Bytes sent = (gradients - Bytes(gradients.value / rates.devices)) * 2;
  const Nanos sum_gradients = TimeFor(sent, rates.collective);
  const BaselineStep whole = WithoutPaging(problem, sum_gradients);
  if (CheckRoom(problem, whole).ok()) return whole;
  const BaselineStep step = WithPaging(problem, rates, memory, sum_gradients);
  SIPHON_RETURN_IF_ERROR(CheckRoom(problem, step));
  return step;
}

constexpr int64_t kFaultPercent = 50;
constexpr int64_t kPagePrefetchPercent = 90;

}  // namespace

absl::StatusOr<BaselineStep> LmsStep(const BaselineProblem& problem) {
  return VirtualMemoryStep(problem, {});
}

absl::StatusOr<BaselineStep> UnifiedMemoryStep(const BaselineProblem& problem) {
  return VirtualMemoryStep(problem, {.in_percent = kFaultPercent, .out_percent = kFaultPercent});
}

absl::StatusOr<BaselineStep> PrefetchedUnifiedMemoryStep(const BaselineProblem& problem) {
  return VirtualMemoryStep(problem, {.in_percent = kPagePrefetchPercent,
                                     .out_percent = kFaultPercent,
                                     .paging = PagingMode::kOneAhead});
}

}  // namespace siphon
