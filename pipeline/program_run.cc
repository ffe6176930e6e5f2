#include "pipeline/program_run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/shared_gradients.h"
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

ProgramRun::ProgramRun(WorkerId me, const WorkerLayout& layout,
                       const std::map<StageId, StageCompute*>& stages, Transport* transport,
                       SwapEngine* swaps, StateSwaps& state, HostSteps& host_steps,
                       int microbatches, const StepEnd& end)
    : me_(me),
      layout_(layout),
      stages_(stages),
      transport_(transport),
      microbatches_(microbatches),
      end_(end),
      swaps_(layout, stages, swaps, recorder_),
      state_(state),
      host_steps_(host_steps) {
  state_.BeginStep(&recorder_);
  for (const StageId stage : SharingStages(layout)) {
    if (HasStage(stage)) unreduced_.insert(stage);
  }
  for (const auto& [stage, compute] : stages_) {
    const auto [watcher, added] = watchers_.try_emplace(stage, *this, stage);
    compute->Watch(&watcher->second);
  }
}

absl::Status ProgramRun::Watcher::BeginRecompute(MicrobatchId microbatch, StageRange layers) {
  SIPHON_RETURN_IF_ERROR(run_.state_.NeedParameters(stage_, layers));
  run_.recorder_.BeginPart({.stage = stage_,
                            .kind = ActionKind::kRecompute,
                            .microbatch = microbatch,
                            .group = ActivationGroupOf(run_.layout_, stage_, layers)});
  return absl::OkStatus();
}

ProgramRun::~ProgramRun() {
  for (const auto& [stage, compute] : stages_) compute->Watch(nullptr);
}

// Between messages nothing is computed, so no more is in memory at once than without.
absl::Status ProgramRun::TakeReceiveMemory(absl::Span<const Action> rest) {
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

absl::Status ProgramRun::Execute(absl::Span<const Action> rest) {
  const Action& action = rest.front();
  SIPHON_RETURN_IF_ERROR(TakeReceiveMemory(rest));
  recorder_.BeginAction(action);
  SIPHON_RETURN_IF_ERROR(Dispatch(action));
  SIPHON_RETURN_IF_ERROR(ReleaseFinishedSends());
  recorder_.EndAction();
  return absl::OkStatus();
}

absl::Status ProgramRun::Dispatch(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
      return Compute(action);
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      return StartSend(action);
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      return StartReceive(action);
    case ActionKind::kReduceGradient:
      return ReduceGradient(action.stage);
    case ActionKind::kReduceNorm:
      return ReduceNorm();
    case ActionKind::kStep:
      return Step(action);
    case ActionKind::kUpdate:
      return absl::FailedPreconditionError(
          "the program changes weights in the middle of a step, which needs weight versions; "
          "workers hold one version of their weights");
    case ActionKind::kDrop:
      return action.microbatch == kNoMicrobatch ? MoveState(action) : DropOrRecompute(action);
    case ActionKind::kRecompute:
      return DropOrRecompute(action);
    case ActionKind::kSwapOut:
    case ActionKind::kSwapOutEnd:
    case ActionKind::kSwapIn:
    case ActionKind::kSwapInEnd:
      return action.microbatch == kNoMicrobatch ? MoveState(action) : swaps_.Run(action);
  }
  return absl::InternalError("an action of unknown kind");
}

absl::Status ProgramRun::Compute(const Action& action) {
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, Find(action.stage));
  if (!within_cell_) ending_ = 0;
  within_cell_ = action.pairing == Pairing::kWithNext;
  state_.BeginPass(action);
  if (action.kind == ActionKind::kForward) return Forward(*compute, action);
  if (action.kind == ActionKind::kBackwardWeight) {
    SIPHON_RETURN_IF_ERROR(compute->BackwardWeight(action.microbatch));
  } else {
    SIPHON_RETURN_IF_ERROR(BackwardToInput(*compute, action));
  }
  if (action.kind != ActionKind::kBackwardInput) ++ending_;
  return absl::OkStatus();
}

absl::Status ProgramRun::Forward(StageCompute& compute, const Action& action) {
  if (action.stage > StageId(0)) {
    SIPHON_RETURN_IF_ERROR(
        Provide({action.stage, Boundary::kInput, action.microbatch}, Previous(action.stage)));
  }
  SIPHON_RETURN_IF_ERROR(compute.Forward(action.microbatch));
  int live = ending_;
  for (const auto& [stage, each] : stages_) live += each->LiveMicrobatches();
  peak_live_ = std::max(peak_live_, live);
  return absl::OkStatus();
}

absl::Status ProgramRun::DropOrRecompute(const Action& action) {
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, Find(action.stage));
  SIPHON_ASSIGN_OR_RETURN(const LayerTensors tensors, ActivationsOf(layout_, action));
  if (action.kind == ActionKind::kDrop) return compute->Drop(action.microbatch, tensors);
  SIPHON_RETURN_IF_ERROR(state_.NeedParameters(action.stage, tensors.layers));
  return compute->Recompute(action.microbatch, tensors.layers);
}

absl::Status ProgramRun::BackwardToInput(StageCompute& compute, const Action& action) {
  if (static_cast<size_t>(Next(action.stage).value) < layout_.worker_of_stage.size()) {
    SIPHON_RETURN_IF_ERROR(
        Provide({action.stage, Boundary::kOutputGradient, action.microbatch}, Next(action.stage)));
  }
  return action.kind == ActionKind::kBackward ? compute.Backward(action.microbatch)
                                              : compute.BackwardInput(action.microbatch);
}

absl::Status ProgramRun::StartSend(const Action& action) {
  const bool forward = IsForward(action.kind);
  const StageId to = forward ? Next(action.stage) : Previous(action.stage);
  const Boundary boundary = forward ? Boundary::kOutput : Boundary::kInputGradient;
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, Find(action.stage));
  if (to < StageId(0) || static_cast<size_t>(to.value) >= layout_.worker_of_stage.size() ||
      HasStage(to)) {
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

absl::Status ProgramRun::StartReceive(const Action& action) {
  const bool forward = IsForward(action.kind);
  const StageId from = forward ? Previous(action.stage) : Next(action.stage);
  const Boundary boundary = ReceivedBy(action.kind);
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, Find(action.stage));
  if (from < StageId(0) || static_cast<size_t>(from.value) >= layout_.worker_of_stage.size() ||
      HasStage(from)) {
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

absl::Status ProgramRun::ReduceGradient(StageId stage) {
  SIPHON_RETURN_IF_ERROR(Find(stage).status());
  if (unreduced_.erase(stage) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "stage ", stage.value, " shares no parameter, or its shared gradients were added already"));
  }
  // All stages at once, with the last: one exchange has one order of messages, which every worker
  // can tell.
  if (!unreduced_.empty()) return absl::OkStatus();
  return ExchangeSharedGradients(me_, layout_, stages_, transport_,
                                 [this](TransferId transfer) { return Await(transfer); });
}

absl::Status ProgramRun::ReduceNorm() {
  if (!unreduced_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no REDUCE_GRAD yet for stage ", unreduced_.begin()->value, ", which shares a parameter"));
  }
  recorder_.BeginWait();  // norms take microseconds: the time goes into waiting for the slowest
  StepContribution mine{.norms = stepped_norms_, .losses = LossesHere()};
  for (const auto& [stage, compute] : stages_) {
    if (mine.norms.contains(stage)) continue;
    SIPHON_ASSIGN_OR_RETURN(mine.norms[stage], compute->GradientNorms());
  }
  SIPHON_ASSIGN_OR_RETURN(agreement_, AgreeOnStep(me_, layout_, microbatches_, mine, transport_));
  recorder_.EndWait();
  return absl::OkStatus();
}

absl::Status ProgramRun::Step(const Action& action) {
  const StageId stage = action.stage;
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, Find(stage));
  const bool agreed = agreement_.has_value();
  // Gradients of shared parameters are complete when those of all stages here are.
  const bool added = unreduced_.empty() || !SharingStages(layout_).contains(stage);
  const bool needs_norm = end_.clip_norm > 0 || end_.overflow == OverflowRule::kSkip;
  if (!added || (needs_norm && !agreed)) {
    return absl::FailedPreconditionError(
        "the optimizer step needs REDUCE_GRAD of all stages that share parameters, and "
        "REDUCE_NORM when gradients are clipped or may overflow");
  }
  // Just in time; the step forgets the gradients.
  if (!agreed && !stepped_norms_.contains(stage)) {
    SIPHON_ASSIGN_OR_RETURN(stepped_norms_[stage], compute->GradientNorms());
  }
  const UpdateSettings settings{
      .update = end_.update,
      .learning_rate = end_.learning_rate,
      .gradient_scale =
          (agreed ? ClippingFactor(GradientNorm(), end_.clip_norm) : 1.0f) / end_.loss_scale,
      .skipped = Overflowed()};
  SIPHON_ASSIGN_OR_RETURN(const StageRange layers, StateLayers(layout_, action));
  SIPHON_RETURN_IF_ERROR(state_.NeedForStep(stage, layers));
  if (host_steps_.Has(stage, layers)) return host_steps_.Step(stage, layers, settings, recorder_);
  return action.group == kWholeStage ? compute->Step(settings)
                                     : compute->StepLayers(settings, layers);
}

double ProgramRun::GradientNorm() const {
  return agreement_->gradient_norm / static_cast<double>(end_.loss_scale);
}

bool ProgramRun::Overflowed() const {
  return end_.overflow == OverflowRule::kSkip && agreement_.has_value() &&
         !std::isfinite(agreement_->gradient_norm);
}

absl::Status ProgramRun::MoveState(const Action& action) {
  SIPHON_RETURN_IF_ERROR(host_steps_.Await(action.stage, recorder_));
  return state_.Run(action);
}

absl::Status ProgramRun::Provide(const Place& place, StageId neighbour) {
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

absl::Status ProgramRun::CopyFromNeighbour(const Place& place, StageId neighbour) {
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

absl::Status ProgramRun::Await(TransferId transfer) {
  SIPHON_ASSIGN_OR_RETURN(const bool done, transport_->Test(transfer));
  if (done) return absl::OkStatus();
  recorder_.BeginWait();
  SIPHON_RETURN_IF_ERROR(transport_->Wait(transfer));
  recorder_.EndWait();
  return absl::OkStatus();
}

absl::Status ProgramRun::ReleaseFinishedSends() {
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

absl::Status ProgramRun::Drain() {
  while (!sends_.empty()) {
    const auto [transfer, place] = sends_.front();
    sends_.erase(sends_.begin());
    SIPHON_RETURN_IF_ERROR(Annotate(Await(transfer), std::apply(Describe, place)));
    const auto& [stage, boundary, microbatch] = place;
    SIPHON_RETURN_IF_ERROR(stages_.at(stage)->Release(boundary, microbatch));
  }
  SIPHON_RETURN_IF_ERROR(host_steps_.EndStep(recorder_));
  SIPHON_RETURN_IF_ERROR(state_.EndStep());
  SIPHON_RETURN_IF_ERROR(swaps_.End());
  return NothingLeft();
}

absl::Status ProgramRun::NothingLeft() const {
  std::vector<std::string> left;
  for (const auto& [place, transfer] : receives_) {
    left.push_back(absl::StrCat("the received ", std::apply(Describe, place)));
  }
  for (const auto& [stage, compute] : stages_) {
    if (const int live = compute->LiveMicrobatches(); live != 0) {
      left.push_back(absl::StrCat(live, " live microbatches of stage ", stage.value));
    }
  }
  if (left.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("left over at the end of the step: ", absl::StrJoin(left, "; ")));
}

StepReport ProgramRun::TakeReport() {
  StepReport report{.peak_live_microbatches = peak_live_,
                    .swapped_out = swaps_.TakeBytesOut(),
                    .timeline = recorder_.TakeTimeline()};
  if (agreement_.has_value()) {
    report.losses = std::move(agreement_->losses);
    report.gradient_norm = GradientNorm();
    report.skipped = Overflowed();
    return report;
  }
  report.losses = LossesHere();
  return report;
}

std::vector<float> ProgramRun::LossesHere() const {
  const auto last = stages_.find(StageId(static_cast<int>(layout_.worker_of_stage.size()) - 1));
  return last == stages_.end() ? std::vector<float>() : last->second->Losses();
}

absl::StatusOr<StageCompute*> ProgramRun::Find(StageId stage) const {
  const auto found = stages_.find(stage);
  if (found != stages_.end()) return found->second;
  std::vector<int> held;
  for (const auto& [held_stage, compute] : stages_) held.push_back(held_stage.value);
  return absl::FailedPreconditionError(absl::StrCat("stage ", stage.value,
                                                    " is not on this worker, which holds stages ",
                                                    absl::StrJoin(held, ", ")));
}

bool ProgramRun::HasStage(StageId stage) const { return stages_.contains(stage); }

}  // namespace siphon
