#ifndef SIPHON_PLANNER_SIMULATOR_STEP_RESIDENCE_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_RESIDENCE_H_

#include <vector>

#include "absl/status/status.h"
#include "planner/simulator/graph/step_writer.h"

namespace siphon {

// All the activations of a (stage, microbatch) that leave their worker's memory and come back:
// SWAP_OUT, SWAP_IN and their ENDs, to and from the host, DROP, and what RECOMPUTE finds.
class StepResidence {
 public:
  // The writer must outlive this. Requires: the schedule passes CheckResidency.
  explicit StepResidence(StepWriter& writer);

  // I has run for the action being written: from now on only what W needs is there.
  void KeepForWeightsOnly();
  // Errors: InvalidArgument when there is no path to the host.
  absl::Status StartSwap(CopyDirection direction);
  void EndSwap(CopyDirection direction);
  // Errors: FailedPrecondition behind the I.
  absl::Status Drop();
  // What DROP has left behind becomes part of the activations that are made anew from task `first`.
  void TakeUpInput(int first);

 private:
  static constexpr int kNone = StepWriter::kNone;

  struct Stash {
    int copy = kNone;  // of the swap under way
    bool only_weights = false;
  };

  Stash& Here();
  Bytes LiveBytes();

  StepWriter& writer_;
  std::vector<Stash> stashes_;  // [replica, stage, microbatch]
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_RESIDENCE_H_
