#include "planner/strategies/known_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace siphon {
namespace {

// Of all steps that are known; beyond that, those that were used longest ago are forgotten.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kMostSteps = 1'000;  // they are looked through one by one

template <typename T>
size_t BytesOf(const std::vector<std::vector<T>>& rows) {
  size_t bytes = 0;
  for (const std::vector<T>& row : rows) bytes += row.size() * sizeof(T);
  return bytes;
}

}  // namespace

KnownSteps::KnownSteps(const PlanningProblem& problem)
    : input_(SimulationOf(problem, {}, {}, problem.schedule)) {
  input_.capacity.clear();
  // By how much devices without a worker are over theirs is for the caller to say, too.
  for (TopologyDevice& device : input_.topology.devices) device.memory = Bytes(0);
}

absl::StatusOr<StepTimes> KnownSteps::Run(const DeviceMapping& mapping, const MemoryPlan& memory,
                                          const LoweredPlan& plan, LendingDetail lending) {
  const auto known = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.programs == plan.names && step.mapping == mapping;
  });
  if (known != steps_.end() && (lending == LendingDetail::kNone || known->lending == lending)) {
    steps_.splice(steps_.begin(), steps_, known);
    return known->times;
  }
  if (known != steps_.end()) {
    bytes_ -= known->bytes;
    steps_.erase(known);
  }
  ++simulations_;
  input_.device_of_worker = mapping.device_of_worker;
  input_.memory = memory;
  input_.schedule = plan.schedule;
  absl::StatusOr<StepTimes> times = SimulateTimes(input_, lending, space_);
  Remember({.mapping = mapping, .programs = plan.names, .lending = lending, .times = times});
  return times;
}

void KnownSteps::Remember(Step step) {
  step.bytes = sizeof(Step) + step.programs.size() * sizeof(int64_t);
  if (step.times.ok()) {
    step.bytes += BytesOf(step.times->step.workers) + BytesOf(step.times->lent.own) +
                  BytesOf(step.times->lent.parked);
  }
  bytes_ += step.bytes;
  steps_.push_front(std::move(step));
  while ((bytes_ > kMostBytes || steps_.size() > kMostSteps) && steps_.size() > 1) {
    bytes_ -= steps_.back().bytes;
    steps_.pop_back();
  }
}

}  // namespace siphon
