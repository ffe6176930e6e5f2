#include "planner/simulator/step_residence.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "planner/status.h"

namespace siphon {
namespace {

// bytes * weight / weights, rounded down: where the parts of a stripe are cut, so that they add up.
Bytes CutAt(Bytes bytes, int64_t weight, int64_t weights) {
  return Bytes(static_cast<int64_t>(absl::Uint128Low64(
      absl::uint128(bytes.value) * absl::uint128(weight) / absl::uint128(weights))));
}

// What RECOMPUTE starts from stays.
Bytes KeptInput(const StageCost& cost) { return std::min(cost.input, cost.stash); }

}  // namespace

StepResidence::StepResidence(StepWriter& writer) : writer_(writer) {
  const Schedule& schedule = writer.input().schedule;
  stashes_.resize(static_cast<size_t>(schedule.replicas) * StageCount(schedule) *
                  schedule.microbatches);
}

StepResidence::Stash& StepResidence::Here() {
  const Schedule& schedule = writer_.input().schedule;
  const Action& action = writer_.action();
  const size_t row =
      static_cast<size_t>(writer_.replica()) * StageCount(schedule) + action.stage.value;
  return stashes_[row * schedule.microbatches + action.microbatch.value];
}

void StepResidence::KeepForWeightsOnly() { Here().only_weights = true; }

Bytes StepResidence::LiveBytes() {
  const StageCost& cost = writer_.CostOf(writer_.action().stage);
  return Here().only_weights ? cost.kept_for_weights : cost.stash;
}

// Of the device's worker; a lender without one keeps no books.
int StepResidence::AccountOf(DeviceId device) const {
  const std::vector<DeviceId>& devices = writer_.input().device_of_worker;
  const auto found = std::find(devices.begin(), devices.end(), device);
  return found == devices.end() ? kNone : static_cast<int>(found - devices.begin());
}

absl::Status StepResidence::StartSwap(CopyDirection direction) {
  const Bytes bytes = LiveBytes();
  if (direction == CopyDirection::kIn) {
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kActivations, bytes);
  }
  const int stage = writer_.action().stage.value;
  const auto& lenders = writer_.input().lenders;
  if (lenders.empty() || lenders[stage].empty()) {
    SIPHON_ASSIGN_OR_RETURN(const Route route,
                            writer_.resources().HostCopy(writer_.account(), direction));
    AddSwapCopy(direction, route, writer_.workers(), bytes);
    return absl::OkStatus();
  }
  int64_t weights = 0;
  for (const SwapShare& share : lenders[stage]) weights += share.weight;
  int64_t weight = 0;
  for (const SwapShare& share : lenders[stage]) {
    SIPHON_ASSIGN_OR_RETURN(const Route route, writer_.resources().PeerCopy(
                                                   writer_.account(), share.lender, direction));
    const Bytes begin = CutAt(bytes, weight, weights);
    weight += share.weight;
    AddSwapCopy(direction, route, AccountOf(share.lender), CutAt(bytes, weight, weights) - begin);
  }
  return absl::OkStatus();
}

void StepResidence::AddSwapCopy(CopyDirection direction, const Route& route, int account,
                                Bytes bytes) {
  const int copy = writer_.AddCopy(TaskRole::kSwap, route, bytes);
  Here().copies.push_back(copy);
  if (account == kNone) return;
  if (direction == CopyDirection::kOut) {
    writer_.ChangeAt(account, copy, TaskMoment::kBegin, MemoryKind::kActivations, bytes);
  } else {
    writer_.ChangeAt(account, copy, TaskMoment::kEnd, MemoryKind::kActivations, bytes * -1);
  }
}

void StepResidence::EndSwap(CopyDirection direction) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  for (const int copy : Here().copies) writer_.Wait(end, copy);
  Here().copies.clear();
  if (direction == CopyDirection::kOut) {
    writer_.Change(end, TaskMoment::kEnd, MemoryKind::kActivations, LiveBytes() * -1);
  }
}

absl::Status StepResidence::Drop() {
  if (Here().only_weights) {
    return writer_.Refuse(" behind the I: what W needs then cannot be computed again");
  }
  const StageCost& cost = writer_.CostOf(writer_.action().stage);
  writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kActivations,
                 KeptInput(cost) - cost.stash);
  return absl::OkStatus();
}

void StepResidence::TakeUpInput(int first) {
  writer_.Change(first, TaskMoment::kBegin, MemoryKind::kActivations,
                 KeptInput(writer_.CostOf(writer_.action().stage)) * -1);
}

}  // namespace siphon
