#include "planner/simulator/graph/step_residence.h"

#include <algorithm>
#include <cstddef>

#include "planner/status.h"

namespace siphon {
namespace {

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

absl::Status StepResidence::StartSwap(CopyDirection direction) {
  const Bytes bytes = LiveBytes();
  if (direction == CopyDirection::kIn) {
    writer_.Change(writer_.last(), TaskMoment::kEnd, MemoryKind::kActivations, bytes);
  }
  SIPHON_ASSIGN_OR_RETURN(const Route route,
                          writer_.resources().HostCopy(writer_.account(), direction));
  const int copy = writer_.AddCopy(TaskRole::kSwap, route, bytes);
  Here().copy = copy;
  const bool out = direction == CopyDirection::kOut;
  writer_.ChangeAt(writer_.host(), copy, out ? TaskMoment::kBegin : TaskMoment::kEnd,
                   MemoryKind::kActivations, out ? bytes : bytes * -1);
  return absl::OkStatus();
}

void StepResidence::EndSwap(CopyDirection direction) {
  const int end = writer_.AddOnLane(TaskRole::kMarker, Nanos(0));
  writer_.Wait(end, Here().copy);
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
