#ifndef SIPHON_PIPELINE_STAGE_ORDER_H_
#define SIPHON_PIPELINE_STAGE_ORDER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/stage_compute.h"
#include "planner/ids.h"

namespace siphon {

// Where a stage stands in its model.
struct StagePosition {
  bool first = false;  // its input is data
  bool last = false;   // its output is a loss
};

// The orders in which the calls of a StageCompute may come (pipeline/stage_compute.h), with the
// messages for all others. A call is checked by its Check, and takes place by its Did.
//
// Thread-safety: one thread. Errors: FailedPrecondition.
class StageOrder {
 public:
  // Forward moves a microbatch from kWaiting to kForwarded (evaluating: kDone), Backward to kDone;
  // its input half to kHalfDone, its weight half from there to kDone.
  enum class Phase { kWaiting, kForwarded, kHalfDone, kDone };

  explicit StageOrder(StagePosition position) : position_(position) {}

  absl::Status CheckBeginStep() const;
  void DidBeginStep(int microbatches, StepMode mode);
  bool IsTraining() const { return mode_ == StepMode::kTrain; }
  int microbatches() const { return static_cast<int>(phases_.size()); }
  absl::StatusOr<Phase> PhaseOf(MicrobatchId microbatch) const;
  int LiveMicrobatches() const;

  // That the boundary may be asked for now, if it is there or is received.
  absl::Status CheckBoundary(Boundary boundary, MicrobatchId microbatch) const;
  static absl::Status NotThere(Boundary boundary, MicrobatchId microbatch);
  absl::Status CheckRelease(Boundary boundary, MicrobatchId microbatch) const;

  // `received`: the microbatch's input was asked for, to be filled.
  absl::Status CheckForward(MicrobatchId microbatch, bool received) const;
  void DidForward(MicrobatchId microbatch);
  // `received`: likewise the gradient of its output.
  absl::Status CheckBackward(MicrobatchId microbatch, bool received) const;
  void DidBackward(MicrobatchId microbatch) { At(microbatch) = Phase::kDone; }
  void DidBackwardInput(MicrobatchId microbatch) { At(microbatch) = Phase::kHalfDone; }
  absl::Status CheckBackwardWeight(MicrobatchId microbatch) const;
  void DidBackwardWeight(MicrobatchId microbatch) { At(microbatch) = Phase::kDone; }
  // `what` happens to activations, of a microbatch that still waits, or is between its passes.
  absl::Status CheckWaiting(MicrobatchId microbatch, absl::string_view what) const;
  absl::Status CheckForwarded(MicrobatchId microbatch, absl::string_view what) const;
  absl::Status CheckGradientsComplete() const;

 private:
  Phase& At(MicrobatchId microbatch) { return phases_[static_cast<size_t>(microbatch.value)]; }

  const StagePosition position_;
  StepMode mode_ = StepMode::kTrain;
  std::vector<Phase> phases_;  // [microbatch]
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STAGE_ORDER_H_
