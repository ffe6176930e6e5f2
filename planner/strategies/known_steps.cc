#include "planner/strategies/known_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace siphon {
namespace {

// Of all steps that are known; beyond that, those that were used longest ago are forgotten.
constexpr size_t kMostBytes = size_t{64} << 20;

// FNV-1a (Fowler, Noll, Vo), a word at a time.
class StepKey {
 public:
  void Add(int64_t word) { key_ = (key_ ^ static_cast<uint64_t>(word)) * 0x100000001b3u; }
  uint64_t Get() const { return key_; }

 private:
  uint64_t key_ = 0xcbf29ce484222325u;
};

uint64_t KeyOf(const DeviceMapping& mapping, const MemoryPlan& memory, const Schedule& schedule) {
  StepKey key;
  for (const DeviceId device : mapping.device_of_worker) key.Add(device.value);
  for (const StagePlan& stage : memory.stages) {
    key.Add(static_cast<int64_t>(stage.groups.size()) * 2 +
            (stage.update == UpdatePlace::kHost ? 1 : 0));
    for (const auto& [group, choice] : stage.groups) {
      key.Add(group.bytes.value);
      key.Add(static_cast<int64_t>(choice.placement));
      for (const Stripe& stripe : choice.stripes) {
        key.Add(stripe.bytes.value ^ (int64_t{stripe.lender.value} << 48));
      }
    }
  }
  for (const std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      key.Add((int64_t{action.group.value} << 40) ^ (int64_t{action.microbatch.value} << 20) ^
              (int64_t{action.stage.value} << 8) ^ static_cast<int64_t>(action.kind));
    }
  }
  return key.Get();
}

template <typename T>
size_t BytesOf(const std::vector<std::vector<T>>& rows) {
  size_t bytes = 0;
  for (const std::vector<T>& row : rows) bytes += row.size() * sizeof(T);
  return bytes;
}

size_t BytesOf(const MemoryPlan& memory) {
  size_t bytes = 0;
  for (const StagePlan& stage : memory.stages) {
    for (const auto& [group, choice] : stage.groups) {
      bytes += sizeof(PlannedGroup) + choice.stripes.size() * sizeof(Stripe);
    }
  }
  return bytes;
}

}  // namespace

KnownSteps::KnownSteps(const PlanningProblem& problem)
    : input_(SimulationOf(problem, {}, {}, problem.schedule)) {
  input_.capacity.clear();
}

absl::StatusOr<StepTimes> KnownSteps::Run(const DeviceMapping& mapping, const MemoryPlan& memory,
                                          const Schedule& schedule, LendingDetail lending) {
  const uint64_t key = KeyOf(mapping, memory, schedule);
  const auto known = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.key == key && step.mapping == mapping && step.memory == memory &&
           step.programs == schedule.programs;
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
  input_.schedule = schedule;
  absl::StatusOr<StepTimes> times = SimulateTimes(input_, lending, space_);
  Remember({.key = key,
            .mapping = mapping,
            .memory = memory,
            .programs = schedule.programs,
            .lending = lending,
            .times = times});
  return times;
}

void KnownSteps::Remember(Step step) {
  step.bytes = sizeof(Step) + BytesOf(step.programs) + BytesOf(step.memory);
  if (step.times.ok()) {
    step.bytes += BytesOf(step.times->step.workers) + BytesOf(step.times->lent.own) +
                  BytesOf(step.times->lent.parked);
  }
  bytes_ += step.bytes;
  steps_.push_front(std::move(step));
  while (bytes_ > kMostBytes && steps_.size() > 1) {
    bytes_ -= steps_.back().bytes;
    steps_.pop_back();
  }
}

}  // namespace siphon
