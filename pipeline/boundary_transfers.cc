#include "pipeline/boundary_transfers.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/status.h"

namespace siphon {
namespace {

std::string Describe(StageId stage, Boundary boundary, MicrobatchId microbatch) {
  return absl::StrCat(BoundaryName(boundary), " of stage ", stage.value, ", microbatch ",
                      microbatch.value);
}

StageId Next(StageId stage) { return StageId(stage.value + 1); }
StageId Previous(StageId stage) { return StageId(stage.value - 1); }

bool IsForward(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kReceiveForward;
}
bool IsSend(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kSendBackward;
}
bool IsReceive(ActionKind kind) {
  return kind == ActionKind::kReceiveForward || kind == ActionKind::kReceiveBackward;
}
Boundary ReceivedBy(ActionKind receive) {
  return IsForward(receive) ? Boundary::kInput : Boundary::kOutputGradient;
}

}  // namespace

absl::StatusOr<StageCompute*> FindStage(const std::map<StageId, StageCompute*>& stages,
                                        StageId stage) {
  const auto found = stages.find(stage);
  if (found != stages.end()) return found->second;
  std::vector<int> held;
  for (const auto& [held_stage, compute] : stages) held.push_back(held_stage.value);
  return absl::FailedPreconditionError(absl::StrCat("stage ", stage.value,
                                                    " is not on this worker, which holds stages ",
                                                    absl::StrJoin(held, ", ")));
}

BoundaryTransfers::BoundaryTransfers(WorkerId me, const WorkerLayout& layout,
                                     const std::map<StageId, StageCompute*>& stages,
                                     Transport* transport, StepRecorder& recorder)
    : me_(me), layout_(layout), stages_(stages), transport_(transport), recorder_(recorder) {}

bool BoundaryTransfers::IsElsewhere(StageId stage) const {
  return stage >= StageId(0) && static_cast<size_t>(stage.value) < layout_.worker_of_stage.size() &&
         !HasStage(stage);
}

// Between messages nothing is computed, so no more is in memory at once than without.
absl::Status BoundaryTransfers::TakeReceiveMemory(absl::Span<const Action> rest) {
  if (transport_ == nullptr || !transport_->SendsKeepDeviceBusy()) return absl::OkStatus();
  if (!IsSend(rest.front().kind)) return absl::OkStatus();
  for (const Action& action : rest) {
    if (IsSend(action.kind)) continue;
    if (!IsReceive(action.kind)) break;
    const auto stage = stages_.find(action.stage);
    if (stage == stages_.end()) break;  // the action says what is wrong with it
    SIPHON_RETURN_IF_ERROR(
        stage->second->Buffers(ReceivedBy(action.kind), action.microbatch).status());
  }
  return absl::OkStatus();
}

absl::Status BoundaryTransfers::StartSend(const Action& action) {
  const bool forward = IsForward(action.kind);
  const StageId to = forward ? Next(action.stage) : Previous(action.stage);
  const Boundary boundary = forward ? Boundary::kOutput : Boundary::kInputGradient;
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, FindStage(stages_, action.stage));
  if (!IsElsewhere(to)) {
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", to.value, " is not on another worker: there is nothing to send"));
  }
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans spans, compute->Buffers(boundary, action.microbatch));
  const Channel channel{me_, WorkerOf(layout_, to), forward ? Lane::kForward : Lane::kBackward};
  SIPHON_ASSIGN_OR_RETURN(const TransferId transfer,
                          transport_->StartSend(channel, {spans.begin(), spans.end()}));
  sends_.push_back({transfer, {action.stage, boundary, action.microbatch}});
  return absl::OkStatus();
}

absl::Status BoundaryTransfers::StartReceive(const Action& action) {
  const bool forward = IsForward(action.kind);
  const StageId from = forward ? Previous(action.stage) : Next(action.stage);
  const Boundary boundary = ReceivedBy(action.kind);
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, FindStage(stages_, action.stage));
  if (!IsElsewhere(from)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "stage ", from.value, " is not on another worker: there is nothing to receive"));
  }
  const Place place{action.stage, boundary, action.microbatch};
  if (receives_.contains(place)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", Describe(action.stage, boundary, action.microbatch), " is being received already"));
  }
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans spans, compute->Buffers(boundary, action.microbatch));
  const Channel channel{WorkerOf(layout_, from), me_, forward ? Lane::kForward : Lane::kBackward};
  SIPHON_ASSIGN_OR_RETURN(const TransferId transfer, transport_->StartReceive(channel, spans));
  receives_[place] = transfer;
  return absl::OkStatus();
}

absl::Status BoundaryTransfers::ProvideFor(const Action& action) {
  if (action.kind == ActionKind::kForward) {
    if (action.stage == StageId(0)) return absl::OkStatus();
    return Provide({action.stage, Boundary::kInput, action.microbatch}, Previous(action.stage));
  }
  const StageId next = Next(action.stage);
  if (static_cast<size_t>(next.value) >= layout_.worker_of_stage.size()) return absl::OkStatus();
  return Provide({action.stage, Boundary::kOutputGradient, action.microbatch}, next);
}

absl::Status BoundaryTransfers::Provide(const Place& place, StageId neighbour) {
  if (HasStage(neighbour)) return CopyFromNeighbour(place, neighbour);
  const auto found = receives_.find(place);
  if (found == receives_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no RECV was started for the ", std::apply(Describe, place)));
  }
  const TransferId transfer = found->second;
  receives_.erase(found);
  return Annotate(Await(transfer), std::apply(Describe, place));
}

absl::Status BoundaryTransfers::CopyFromNeighbour(const Place& place, StageId neighbour) {
  const auto& [stage, boundary, microbatch] = place;
  const Boundary source =
      boundary == Boundary::kInput ? Boundary::kOutput : Boundary::kInputGradient;
  StageCompute& giver = *stages_.at(neighbour);
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans from, giver.Buffers(source, microbatch));
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans to, stages_.at(stage)->Buffers(boundary, microbatch));
  bool alike = from.size() == to.size();
  for (size_t part = 0; alike && part < from.size(); ++part) {
    alike = from[part].size() == to[part].size();
    if (alike) SIPHON_RETURN_IF_ERROR(stages_.at(stage)->CopyWithin(from[part], to[part]));
  }
  if (!alike) {
    return absl::InternalError(absl::StrCat("the ", Describe(neighbour, source, microbatch),
                                            " and the ", Describe(stage, boundary, microbatch),
                                            " have other sizes"));
  }
  return giver.Release(source, microbatch);
}

absl::Status BoundaryTransfers::Await(TransferId transfer) {
  SIPHON_ASSIGN_OR_RETURN(const bool done, transport_->Test(transfer));
  if (done) return absl::OkStatus();
  recorder_.BeginWait();
  SIPHON_RETURN_IF_ERROR(transport_->Wait(transfer));
  recorder_.EndWait();
  return absl::OkStatus();
}

absl::Status BoundaryTransfers::ReleaseFinishedSends() {
  for (size_t index = 0; index < sends_.size();) {
    const auto [stage, boundary, microbatch] = sends_[index].place;
    SIPHON_ASSIGN_OR_RETURN(const bool done, transport_->Test(sends_[index].transfer));
    if (!done) {
      ++index;
      continue;
    }
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(index));
    SIPHON_RETURN_IF_ERROR(stages_.at(stage)->Release(boundary, microbatch));
  }
  return absl::OkStatus();
}

absl::Status BoundaryTransfers::FinishSends() {
  while (!sends_.empty()) {
    const auto [transfer, place] = sends_.front();
    sends_.erase(sends_.begin());
    SIPHON_RETURN_IF_ERROR(Annotate(Await(transfer), std::apply(Describe, place)));
    const auto& [stage, boundary, microbatch] = place;
    SIPHON_RETURN_IF_ERROR(stages_.at(stage)->Release(boundary, microbatch));
  }
  return absl::OkStatus();
}

std::vector<std::string> BoundaryTransfers::Unused() const {
  std::vector<std::string> unused;
  for (const auto& [place, transfer] : receives_) {
    unused.push_back(absl::StrCat("the received ", std::apply(Describe, place)));
  }
  return unused;
}

}  // namespace siphon
