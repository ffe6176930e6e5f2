#include "launch/profile/lend_second_choices.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/round_up.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What slots begin at (swap/parking_layout).
// No limit, and small enough to be added up.
constexpr Bytes kAnything(int64_t{1} << 50);

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
  SpareLending spare(plan.topology, mapping, capacity, plan.predicted.peak, plan.memory,
                     worker_of_stage);
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

SpareLending::SpareLending(const Topology& topology, DeviceMapping mapping,
                           const std::vector<Bytes>& capacity, const std::vector<Bytes>& peak,
                           const MemoryPlan& plan, const std::vector<WorkerId>& worker_of_stage)
    : topology_(topology), mapping_(std::move(mapping)), spare_(peak.size()) {
  for (size_t worker = 0; worker < spare_.size(); ++worker) {
    const Bytes limit = capacity.empty() ? Bytes(0) : capacity[worker];
    spare_[worker] = limit == Bytes(0) ? kAnything : std::max(limit - peak[worker], Bytes(0));
  }
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const PlannedGroup& planned : plan.stages[stage].groups) {
      if (planned.choice.second_choice != Placement::kRecompute) continue;
      spare_[static_cast<size_t>(worker_of_stage[stage].value)] = Bytes(0);
    }
  }
}

std::optional<std::vector<Stripe>> SpareLending::Place(WorkerId owner, Bytes bytes, int64_t times) {
  if (bytes == Bytes(0) || times == 0) return std::nullopt;
  const DeviceId from = mapping_.device_of_worker[static_cast<size_t>(owner.value)];
  std::vector<LenderWeight> weights;
  int64_t room = 0;
  for (size_t worker = 0; worker < spare_.size(); ++worker) {
    const DeviceId to = mapping_.device_of_worker[worker];
    const bool linked = to != from && FindLink(topology_, from, to).has_value() &&
                        FindLink(topology_, to, from).has_value();
    // Each stripe may be rounded up, twice.
    const int64_t left =
        std::min(spare_[worker].value / times, bytes.value + 2 * kCacheLine.value) -
        2 * kCacheLine.value;
    if (!linked || left <= 0) continue;
    weights.push_back({to, left});
    room += left;
  }
  if (room < bytes.value) return std::nullopt;
  std::vector<Stripe> stripes = CutStripes(bytes, weights, kCacheLine);
  for (const Stripe& stripe : stripes) {
    for (size_t worker = 0; worker < spare_.size(); ++worker) {
      if (mapping_.device_of_worker[worker] != stripe.lender) continue;
      spare_[worker] -= RoundUp(stripe.bytes, kCacheLine) * times;
      SIPHON_CHECK(spare_[worker] >= Bytes(0), "lenders lend what they have");
    }
  }
  return stripes;
}

bool CanGoToLenders(const StagePlan& stage, const PlannedGroup& planned) {
  const Placement from = planned.choice.placement;
  if (from != Placement::kHostSwap && from != Placement::kNvmeSwap) return false;
  const bool weights = !IsPassing(planned.group.kind);
  return !(stage.update == UpdatePlace::kHost && weights && from == Placement::kHostSwap);
}

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
