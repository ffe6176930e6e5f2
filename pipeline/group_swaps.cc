#include "pipeline/group_swaps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/await_copy.h"
#include "planner/status.h"

namespace siphon {
namespace {

ParkedGroup GroupOf(const Action& action) {
  return {action.stage, action.group, action.microbatch};
}

}  // namespace

GroupSwaps::GroupSwaps(const WorkerLayout& layout, const std::map<StageId, StageCompute*>& stages,
                       SwapEngine* engine, StepRecorder& recorder)
    : layout_(layout), stages_(stages), engine_(engine), recorder_(recorder) {}

GroupSwaps::~GroupSwaps() {
  if (engine_ != nullptr && !ended_) engine_->Abort();
}

absl::Status GroupSwaps::Begin(const std::vector<Action>& program) {
  for (const Action& action : program) {
    if (action.kind != ActionKind::kSwapOut || action.microbatch == kNoMicrobatch) continue;
    SIPHON_RETURN_IF_ERROR(Collect(action));
  }
  return absl::OkStatus();
}

absl::Status GroupSwaps::Collect(const Action& action) {
  SIPHON_ASSIGN_OR_RETURN(const LayerTensors tensors, ActivationsOf(layout_, action));
  if (engine_ == nullptr) {
    return absl::FailedPreconditionError(
        "the program moves tensors, and this worker was given no place to park them");
  }
  const auto found = stages_.find(action.stage);
  if (found == stages_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("stage ", action.stage.value, " is not on this worker"));
  }
  groups_[GroupOf(action)].layers = tensors.layers;
  return found->second->Collect(action.microbatch, tensors);
}

absl::Status GroupSwaps::Run(const Action& action) {
  const ParkedGroup group = GroupOf(action);
  if (!groups_.contains(group)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no SWAP_OUT of ", ToString(group), " stands in this program"));
  }
  switch (action.kind) {
    case ActionKind::kSwapOut:
      return Out(group);
    case ActionKind::kSwapOutEnd:
      return OutEnd(group);
    case ActionKind::kSwapIn:
      return In(group);
    case ActionKind::kSwapInEnd:
      return InEnd(group);
    default:
      return absl::InternalError("not a swap");
  }
}

absl::Status GroupSwaps::Out(const ParkedGroup& group) {
  Leaving& leaving = groups_.at(group);
  leaving.wanted = true;
  return leaving.saved ? StartOut(group, leaving) : absl::OkStatus();
}

absl::Status GroupSwaps::Saved(StageId stage, MicrobatchId microbatch, StageRange layers) {
  const ParkedGroup group{stage, ActivationGroupOf(layout_, stage, layers), microbatch};
  const auto found = groups_.find(group);
  if (found == groups_.end()) return absl::OkStatus();
  found->second.saved = true;
  return found->second.wanted ? StartOut(group, found->second) : absl::OkStatus();
}

absl::Status GroupSwaps::StartOut(const ParkedGroup& group, const Leaving& leaving) {
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors,
                          ComputeOf(group).SavedTensors(group.microbatch, leaving.layers));
  return engine_->StartOut(group, {tensors.begin(), tensors.end()});
}

absl::Status GroupSwaps::OutEnd(const ParkedGroup& group) {
  SIPHON_RETURN_IF_ERROR(AwaitOut(*engine_, group, &recorder_));
  return ComputeOf(group).FreeSaved(group.microbatch, groups_.at(group).layers);
}

absl::Status GroupSwaps::In(const ParkedGroup& group) {
  SIPHON_ASSIGN_OR_RETURN(TensorSpans tensors,
                          ComputeOf(group).RefillSaved(group.microbatch, groups_.at(group).layers));
  return engine_->StartIn(group, std::move(tensors));
}

absl::Status GroupSwaps::InEnd(const ParkedGroup& group) {
  return AwaitIn(*engine_, group, &recorder_);
}

absl::Status GroupSwaps::Need(StageId stage, MicrobatchId microbatch, StageRange layers) {
  const ParkedGroup group{stage, ActivationGroupOf(layout_, stage, layers), microbatch};
  if (!groups_.contains(group) || !engine_->IsAway(group)) return absl::OkStatus();
  recorder_.BeginPart({.stage = stage,
                       .kind = ActionKind::kSwapInEnd,
                       .microbatch = microbatch,
                       .group = group.group});
  SIPHON_RETURN_IF_ERROR(InEnd(group));
  recorder_.EndPart();
  return absl::OkStatus();
}

absl::Status GroupSwaps::End() {
  if (engine_ == nullptr) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(engine_->CheckNothingAway());
  ended_ = true;
  return absl::OkStatus();
}

std::map<Placement, Bytes> GroupSwaps::TakeBytesOut() {
  return engine_ == nullptr ? std::map<Placement, Bytes>() : engine_->TakeBytesOut();
}

}  // namespace siphon
