#include "pipeline/group_swaps.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
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
  leaving.coming = false;
  return leaving.saved ? StartOut(group, leaving) : absl::OkStatus();
}

void GroupSwaps::BeginForward(StageId stage, MicrobatchId microbatch) {
  leaving_.clear();
  left_ = 0;
  size_t behind = 0;
  for (const auto& [group, leaving] : groups_) {
    if (group.stage != stage || group.microbatch != microbatch) continue;
    if (leaving.wanted && !leaving.under_forward) ++behind;
  }
  most_leaving_ = std::max<size_t>(behind, 1);
}

absl::Status GroupSwaps::EndForward() { return SendOn(leaving_.size()); }

absl::Status GroupSwaps::SendOn(size_t left) {
  for (; left_ < left; ++left_) {
    const ParkedGroup group = leaving_[left_];
    if (!groups_.at(group).under_forward) continue;
    recorder_.BeginPart({.stage = group.stage,
                         .kind = ActionKind::kSwapOutEnd,
                         .microbatch = group.microbatch,
                         .group = group.group});
    SIPHON_RETURN_IF_ERROR(OutEnd(group));
    recorder_.EndPart();
  }
  return absl::OkStatus();
}

absl::Status GroupSwaps::BeginBackward(StageId stage, MicrobatchId microbatch) {
  coming_.clear();
  came_ = 0;
  for (const auto& [group, leaving] : groups_) {
    const bool its = group.stage == stage && group.microbatch == microbatch;
    if (its && !leaving.coming && engine_->IsAway(group)) coming_.push_back(group);
  }
  std::sort(coming_.begin(), coming_.end(), [&](const ParkedGroup& a, const ParkedGroup& b) {
    return groups_.at(a).layers.begin > groups_.at(b).layers.begin;
  });
  return StartNextIn();
}

absl::Status GroupSwaps::StartNextIn() {
  return came_ < coming_.size() ? In(coming_[came_++]) : absl::OkStatus();
}

absl::Status GroupSwaps::Saved(StageId stage, MicrobatchId microbatch, StageRange layers) {
  const ParkedGroup group{stage, ActivationGroupOf(layout_, stage, layers), microbatch};
  const auto found = groups_.find(group);
  if (found == groups_.end()) return absl::OkStatus();
  found->second.saved = true;
  if (!found->second.wanted) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(StartOut(group, found->second));
  leaving_.push_back(group);
  return SendOn(leaving_.size() - std::min(leaving_.size(), most_leaving_));
}

absl::Status GroupSwaps::StartOut(const ParkedGroup& group, const Leaving& leaving) {
  SIPHON_ASSIGN_OR_RETURN(const TensorSpans tensors,
                          ComputeOf(group).SavedTensors(group.microbatch, leaving.layers));
  return engine_->StartOut(group, {tensors.begin(), tensors.end()});
}

absl::Status GroupSwaps::OutEnd(const ParkedGroup& group) {
  if (!groups_.at(group).saved) {
    groups_.at(group).under_forward = true;
    return absl::OkStatus();
  }
  SIPHON_RETURN_IF_ERROR(AwaitOut(*engine_, group, &recorder_));
  return ComputeOf(group).FreeSaved(group.microbatch, groups_.at(group).layers);
}

absl::Status GroupSwaps::In(const ParkedGroup& group) {
  groups_.at(group).coming = true;
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
  const bool under = absl::c_linear_search(coming_, group);
  if (under && !groups_.at(group).coming) SIPHON_RETURN_IF_ERROR(StartNextIn());
  recorder_.BeginPart({.stage = stage,
                       .kind = ActionKind::kSwapInEnd,
                       .microbatch = microbatch,
                       .group = group.group});
  SIPHON_RETURN_IF_ERROR(InEnd(group));
  recorder_.EndPart();
  return under && StreamBuffers(stage) > 1 ? StartNextIn() : absl::OkStatus();
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
