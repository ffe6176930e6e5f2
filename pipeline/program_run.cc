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
      boundaries_(me, layout, stages, transport, recorder_),
      swaps_(layout, stages, swaps, recorder_),
      state_(state),
      host_steps_(host_steps) {
  state_.BeginStep(&recorder_);
  for (const StageId stage : SharingStages(layout)) {
    if (stages_.contains(stage)) unreduced_.insert(stage);
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

absl::Status ProgramRun::Execute(absl::Span<const Action> rest) {
  const Action& action = rest.front();
  SIPHON_RETURN_IF_ERROR(boundaries_.TakeReceiveMemory(rest));
  recorder_.BeginAction(action);
  SIPHON_RETURN_IF_ERROR(Dispatch(action));
  SIPHON_RETURN_IF_ERROR(boundaries_.ReleaseFinishedSends());
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
      return boundaries_.StartSend(action);
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      return boundaries_.StartReceive(action);
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
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, FindStage(stages_, action.stage));
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
  SIPHON_RETURN_IF_ERROR(boundaries_.ProvideFor(action));
  swaps_.BeginForward(action.stage, action.microbatch);
  SIPHON_RETURN_IF_ERROR(compute.Forward(action.microbatch));
  SIPHON_RETURN_IF_ERROR(swaps_.EndForward());
  int live = ending_;
  for (const auto& [stage, each] : stages_) live += each->LiveMicrobatches();
  peak_live_ = std::max(peak_live_, live);
  return absl::OkStatus();
}

absl::Status ProgramRun::DropOrRecompute(const Action& action) {
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, FindStage(stages_, action.stage));
  SIPHON_ASSIGN_OR_RETURN(const LayerTensors tensors, ActivationsOf(layout_, action));
  if (action.kind == ActionKind::kDrop) return compute->Drop(action.microbatch, tensors);
  SIPHON_RETURN_IF_ERROR(state_.NeedParameters(action.stage, tensors.layers));
  return compute->Recompute(action.microbatch, tensors.layers);
}

absl::Status ProgramRun::BackwardToInput(StageCompute& compute, const Action& action) {
  SIPHON_RETURN_IF_ERROR(boundaries_.ProvideFor(action));
  SIPHON_RETURN_IF_ERROR(swaps_.BeginBackward(action.stage, action.microbatch));
  return action.kind == ActionKind::kBackward ? compute.Backward(action.microbatch)
                                              : compute.BackwardInput(action.microbatch);
}

absl::Status ProgramRun::ReduceGradient(StageId stage) {
  SIPHON_RETURN_IF_ERROR(FindStage(stages_, stage).status());
  if (unreduced_.erase(stage) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "stage ", stage.value, " shares no parameter, or its shared gradients were added already"));
  }
  // All stages at once, with the last: one exchange has one order of messages, which every worker
  // can tell.
  if (!unreduced_.empty()) return absl::OkStatus();
  return ExchangeSharedGradients(me_, layout_, stages_, transport_, [this](TransferId transfer) {
    return boundaries_.Await(transfer);
  });
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
  SIPHON_ASSIGN_OR_RETURN(StageCompute * compute, FindStage(stages_, stage));
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

absl::Status ProgramRun::Drain() {
  SIPHON_RETURN_IF_ERROR(boundaries_.FinishSends());
  SIPHON_RETURN_IF_ERROR(host_steps_.EndStep(recorder_));
  SIPHON_RETURN_IF_ERROR(state_.EndStep());
  SIPHON_RETURN_IF_ERROR(swaps_.End());
  return NothingLeft();
}

absl::Status ProgramRun::NothingLeft() const {
  std::vector<std::string> left = boundaries_.Unused();
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

}  // namespace siphon
