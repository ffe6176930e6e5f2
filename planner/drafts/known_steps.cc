#include "planner/drafts/known_steps.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "planner/drafts/step_key.h"

namespace siphon {
namespace {

// Of all steps that are known; beyond that, and beyond their number, as each is a little more than
// its bytes say, those that were used longest ago are forgotten.
constexpr size_t kMostBytes = size_t{64} << 20;

template <typename T>
size_t BytesOf(const std::vector<std::vector<T>>& rows) {
  size_t bytes = 0;
  for (const std::vector<T>& row : rows) bytes += row.size() * sizeof(T);
  return bytes;
}

uint64_t KeyOf(const DeviceMapping& mapping, const std::vector<int64_t>& programs) {
  StepKey key;
  for (const DeviceId device : mapping.device_of_worker) key.Add(device.value);
  for (const int64_t program : programs) key.Add(program);
  return key.Get();
}

}  // namespace

KnownSteps::KnownSteps(const PlanningProblem& problem, size_t most_steps)
    : most_steps_(most_steps), input_(SimulationOf(problem, {}, {}, problem.schedule)) {
  input_.capacity.clear();
  // By how much devices without a worker are over theirs is for the caller to say, too.
  for (TopologyDevice& device : input_.topology.devices) device.memory = Bytes(0);
}

absl::StatusOr<StepTimes> KnownSteps::Run(const DeviceMapping& mapping, const MemoryPlan& memory,
                                          const LoweredPlan& plan, LendingDetail lending) {
  const uint64_t key = KeyOf(mapping, plan.names);
  const Place known = Find(key, mapping, plan.names);
  if (known != steps_.end() && (lending == LendingDetail::kNone || known->lending == lending)) {
    steps_.splice(steps_.begin(), steps_, known);
    return known->times;
  }
  if (known != steps_.end()) Forget(known);
  ++simulations_;
  input_.device_of_worker = mapping.device_of_worker;
  input_.memory = memory;
  input_.schedule = plan.schedule;
  absl::StatusOr<StepTimes> times = SimulateTimes(input_, lending, space_);
  Remember(
      {.key = key, .mapping = mapping, .programs = plan.names, .lending = lending, .times = times});
  return times;
}

KnownSteps::Place KnownSteps::Find(uint64_t key, const DeviceMapping& mapping,
                                   const std::vector<int64_t>& programs) {
  const auto [first, last] = by_key_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return entry.second->programs == programs && entry.second->mapping == mapping;
  });
  return found == last ? steps_.end() : found->second;
}

void KnownSteps::Forget(Place step) {
  const auto [first, last] = by_key_.equal_range(step->key);
  by_key_.erase(
      std::find_if(first, last, [step](const auto& entry) { return entry.second == step; }));
  bytes_ -= step->bytes;
  steps_.erase(step);
}

void KnownSteps::Remember(Step step) {
  step.bytes = sizeof(Step) + step.programs.size() * sizeof(int64_t);
  if (step.times.ok()) {
    step.bytes += BytesOf(step.times->step.workers) + BytesOf(step.times->lent.own) +
                  BytesOf(step.times->lent.parked);
  }
  bytes_ += step.bytes;
  steps_.push_front(std::move(step));
  by_key_.emplace(steps_.front().key, steps_.begin());
  while ((bytes_ > kMostBytes || steps_.size() > most_steps_) && steps_.size() > 1) {
    Forget(std::prev(steps_.end()));
  }
}

}  // namespace siphon
