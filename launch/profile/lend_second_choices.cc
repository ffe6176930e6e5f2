#include "launch/profile/lend_second_choices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/round_up.h"
#include "planner/second_choices/spare_lending.h"

namespace siphon {
namespace {

int64_t TimesAway(const std::vector<WorkerParking>& parking, WorkerId worker,
                  const WorkerParking::GroupPlace& place) {
  if (parking.empty()) return 0;
  const auto& slots = parking[static_cast<size_t>(worker.value)].slots;
  const auto found = slots.find(place);
  return found == slots.end() ? 0 : static_cast<int64_t>(found->second.size());
}

SecondStripes StripesOf(const PlanText& plan, const std::vector<WorkerParking>& parking) {
  std::vector<Bytes> capacity;
  for (const PlanWorker& worker : plan.workers) capacity.push_back(worker.capacity);
  const DeviceMapping mapping = plan.mapping.device_of_worker.empty()
                                    ? IdentityMapping(static_cast<int>(plan.workers.size()))
                                    : plan.mapping;
  const std::vector<WorkerId>& worker_of_stage = plan.training.worker_of_stage;
  const PlanPrediction& predicted = plan.predicted;
  // What workers lend is one piece of memory each, whose ends are counted beside it.
  SpareLending spare(plan.topology, mapping, capacity,
                     predicted.peak_at_most.empty() ? predicted.peak : predicted.peak_at_most,
                     kCacheLine);
  SecondStripes stripes;
  for (size_t stage = 0; stage < plan.memory.stages.size(); ++stage) {
    const std::vector<PlannedGroup>& groups = plan.memory.stages[stage].groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      const WorkerParking::GroupPlace place(static_cast<int>(stage), static_cast<int>(group));
      if (groups[group].choice.second_choice != Placement::kPeerSwap) continue;
      const int64_t times = TimesAway(parking, worker_of_stage[stage], place);
      auto found = spare.Place(worker_of_stage[stage], groups[group].group.bytes, times);
      if (found.has_value()) stripes[place] = *std::move(found);
    }
  }
  return stripes;
}

}  // namespace

SecondLending SecondLendingOf(const PlanText& plan, const std::vector<WorkerParking>& parking) {
  if (parking.empty()) return {};
  SecondLending second{.stripes = StripesOf(plan, parking), .at_most = parking};
  if (second.stripes.empty()) return second;
  const auto taken = TakeSecondChoices(
      {plan.memory, plan.training},
      [](StageId, const PlannedGroup& planned) {
        return planned.choice.second_choice == Placement::kPeerSwap;
      },
      second.stripes);
  if (!taken.ok()) return {.at_most = parking};  // no stripes for one of them: for none
  for (WorkerParking& worker : second.at_most) {
    for (const auto& [place, bytes] : MoveParking(worker, taken->memory).bytes) {
      Bytes& most = worker.bytes[place];
      most = std::max(most, bytes);
    }
  }
  return second;
}

}  // namespace siphon
