#include "planner/second_choices/spare_lending.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "planner/round_up.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/status.h"

namespace siphon {
namespace {

// No limit, and small enough to be added up.
constexpr Bytes kAnything(int64_t{1} << 50);

// Whether workers can send the group to a lender by the program that it has: it is parked with the
// host or on a drive, and no optimizer step works on it there.
bool CanGoToLenders(const StagePlan& stage, const PlannedGroup& planned) {
  const Placement from = planned.choice.placement;
  if (from != Placement::kHostSwap && from != Placement::kNvmeSwap) return false;
  return !StaysForHostStep(stage, planned);
}

bool WantsLenders(const StagePlan& stage, const PlannedGroup& planned) {
  return planned.choice.second_choice == Placement::kKeep && CanGoToLenders(stage, planned);
}

}  // namespace

SpareLending::SpareLending(const Topology& topology, DeviceMapping mapping,
                           const std::vector<Bytes>& capacity, const std::vector<Bytes>& peak,
                           Bytes granule)
    : topology_(topology),
      mapping_(std::move(mapping)),
      rounding_(granule > kCacheLine ? granule : Bytes(0)),
      spare_(peak.size()) {
  for (size_t worker = 0; worker < spare_.size(); ++worker) {
    const Bytes limit = capacity.empty() ? Bytes(0) : capacity[worker];
    spare_[worker] = limit == Bytes(0) ? kAnything : std::max(limit - peak[worker], Bytes(0));
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
    const Bytes rest = sets_aside_.contains({owner, worker}) ? Bytes(0) : rounding_;
    // Each stripe may be rounded up, twice.
    const int64_t left =
        std::min((spare_[worker] - rest).value / times, bytes.value + 2 * kCacheLine.value) -
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
      if (sets_aside_.insert({owner, worker}).second) spare_[worker] -= rounding_;
      spare_[worker] -= RoundUp(stripe.bytes, kCacheLine) * times;
      SIPHON_CHECK(spare_[worker] >= Bytes(0), "lenders lend what they have");
    }
  }
  return stripes;
}

bool AnyWantsLenders(const MemoryPlan& plan) {
  return absl::c_any_of(plan.stages, [](const StagePlan& stage) {
    return absl::c_any_of(
        stage.groups, [&](const PlannedGroup& planned) { return WantsLenders(stage, planned); });
  });
}

void LendToTheRest(const std::vector<WorkerId>& worker_of_stage,
                   absl::FunctionRef<int64_t(StageId stage, GroupId group)> times,
                   SpareLending spare, MemoryPlan& plan) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    StagePlan& stage_plan = plan.stages[stage];
    for (size_t group = 0; group < stage_plan.groups.size(); ++group) {
      PlannedGroup& planned = stage_plan.groups[group];
      GroupChoice& choice = planned.choice;
      if (!WantsLenders(stage_plan, planned)) continue;
      const int64_t away =
          times(StageId(static_cast<int>(stage)), GroupId(static_cast<int>(group)));
      if (spare.Place(worker_of_stage[stage], planned.group.bytes, away).has_value()) {
        choice.second_choice = Placement::kPeerSwap;
      }
    }
  }
}

}  // namespace siphon
