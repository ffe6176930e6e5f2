#include "pipeline/stage_order.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status RefuseBoundary(Boundary boundary, MicrobatchId microbatch, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the ", BoundaryName(boundary), " of microbatch ", microbatch.value, " ", why));
}

}  // namespace

absl::Status StageOrder::CheckBeginStep() const {
  if (const int live = LiveMicrobatches(); live > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a step cannot begin while ", live,
                     " microbatches of the one before await their backward pass"));
  }
  return absl::OkStatus();
}

void StageOrder::DidBeginStep(int microbatches, StepMode mode) {
  mode_ = mode;
  phases_.assign(static_cast<size_t>(microbatches), Phase::kWaiting);
}

absl::StatusOr<StageOrder::Phase> StageOrder::PhaseOf(MicrobatchId microbatch) const {
  if (microbatch.value < 0 || microbatch.value >= microbatches()) {
    return absl::FailedPreconditionError(absl::StrCat("there is no microbatch ", microbatch.value,
                                                      " in this step of ", microbatches()));
  }
  return phases_[static_cast<size_t>(microbatch.value)];
}

int StageOrder::LiveMicrobatches() const {
  return static_cast<int>(std::count_if(phases_.begin(), phases_.end(), [](Phase phase) {
    return phase == Phase::kForwarded || phase == Phase::kHalfDone;
  }));
}

absl::Status StageOrder::CheckBoundary(Boundary boundary, MicrobatchId microbatch) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  const bool towards_input = boundary == Boundary::kInput || boundary == Boundary::kInputGradient;
  const bool is_gradient =
      boundary == Boundary::kOutputGradient || boundary == Boundary::kInputGradient;
  if (towards_input && position_.first) {
    return RefuseBoundary(boundary, microbatch, "does not exist: this is the first stage");
  }
  if (!towards_input && position_.last) {
    return RefuseBoundary(boundary, microbatch, "does not exist: this is the last stage");
  }
  if (is_gradient && !IsTraining()) {
    return RefuseBoundary(boundary, microbatch, "does not exist in an evaluation");
  }
  if (boundary == Boundary::kInput && phase != Phase::kWaiting) {
    return RefuseBoundary(boundary, microbatch, "was taken over by its forward pass");
  }
  if (boundary == Boundary::kOutputGradient && phase > Phase::kForwarded) {
    return RefuseBoundary(boundary, microbatch, "was taken over by its backward pass");
  }
  return absl::OkStatus();
}

absl::Status StageOrder::NotThere(Boundary boundary, MicrobatchId microbatch) {
  return RefuseBoundary(boundary, microbatch, "is not there: not made yet, or released");
}

absl::Status StageOrder::CheckRelease(Boundary boundary, MicrobatchId microbatch) const {
  if (boundary == Boundary::kInput || boundary == Boundary::kOutputGradient) {
    return RefuseBoundary(boundary, microbatch, "is not released: its pass takes it over");
  }
  return CheckBoundary(boundary, microbatch);
}

absl::Status StageOrder::CheckForward(MicrobatchId microbatch, bool received) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  if (phase != Phase::kWaiting) {
    return absl::FailedPreconditionError(
        absl::StrCat("a second forward of microbatch ", microbatch.value, " in one step"));
  }
  if (position_.first || received) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("forward of microbatch ", microbatch.value, " before its input was received"));
}

void StageOrder::DidForward(MicrobatchId microbatch) {
  At(microbatch) = IsTraining() ? Phase::kForwarded : Phase::kDone;
}

absl::Status StageOrder::CheckBackward(MicrobatchId microbatch, bool received) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  if (phase != Phase::kForwarded) {
    return absl::FailedPreconditionError(absl::StrCat(
        "backward of microbatch ", microbatch.value,
        phase == Phase::kWaiting ? " before its forward pass" : ", which has none left"));
  }
  if (position_.last || received) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("backward of microbatch ", microbatch.value,
                                                    " before the gradient of its output was "
                                                    "received"));
}

absl::Status StageOrder::CheckBackwardWeight(MicrobatchId microbatch) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  if (phase == Phase::kHalfDone) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("weight gradients of microbatch ", microbatch.value,
                   phase == Phase::kDone ? ", which has none left" : " before those of its input"));
}

absl::Status StageOrder::CheckWaiting(MicrobatchId microbatch, absl::string_view what) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  if (phase == Phase::kWaiting && IsTraining()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("activations of microbatch ", microbatch.value, " are ", what,
                   IsTraining() ? " before its forward pass" : " in training only"));
}

absl::Status StageOrder::CheckForwarded(MicrobatchId microbatch, absl::string_view what) const {
  SIPHON_ASSIGN_OR_RETURN(const Phase phase, PhaseOf(microbatch));
  if (phase == Phase::kForwarded) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("activations of microbatch ", microbatch.value,
                                                    " are ", what,
                                                    " between its forward and its backward pass"));
}

absl::Status StageOrder::CheckGradientsComplete() const {
  const auto done = std::count(phases_.begin(), phases_.end(), Phase::kDone);
  if (IsTraining() && done == microbatches() && done > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      IsTraining() ? absl::StrCat("the gradients are not complete: ", done, " of ", microbatches(),
                                  " microbatches had their backward pass")
                   : "an evaluation has no gradients");
}

}  // namespace siphon
