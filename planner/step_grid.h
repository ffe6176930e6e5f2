#ifndef SIPHON_PLANNER_STEP_GRID_H_
#define SIPHON_PLANNER_STEP_GRID_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/schedule.h"

namespace siphon {

// Steps that a compute action takes. Everything else takes none, messages included.
struct StepCosts {
  int forward = 1;
  int backward_input = 1;
  int backward_weight = 1;  // B: both together
};

// From step `begin` to before step `end`.
struct GridCell {
  int begin = 0;
  int end = 0;
  Action action;
  friend bool operator==(const GridCell&, const GridCell&) = default;
};

// When every worker does what, in whole steps from 0.
struct StepGrid {
  int steps = 0;
  std::vector<std::vector<GridCell>> rows;  // [worker]; cells of no duration are left out
  friend bool operator==(const StepGrid&, const StepGrid&) = default;
};

// 1 - busy time / (workers * steps): filling and draining the pipeline included.
double BubbleFraction(const StepGrid& grid);
// Steps that each worker idles between its own first and last cell.
std::vector<int> InnerIdle(const StepGrid& grid);
// All of them, over workers * steps.
double InnerIdleFraction(const StepGrid& grid);

// Every worker runs each action as early as its order and its inputs allow; messages are free. The
// members of a compound cell run one after the other, each as soon as its own input is there.
//
// Errors: FailedPrecondition with the grid of programs when a worker, stage or microbatch does not
// exist, or when the workers wait for each other.
absl::StatusOr<StepGrid> DrawStepGrid(const Schedule& schedule, const StepCosts& costs = {});

// A lowered schedule, in which every action takes one step, messages too: in each step, every
// worker runs its next action if what it needs has run, in the order of workers, and then those
// that still stand try once more. This is the measure of torch.distributed.pipelining's dry run; it
// knows nothing of durations.
//
// Errors: as above.
absl::StatusOr<StepGrid> DrawLoweredGrid(const Schedule& schedule);

// The length of that grid.
absl::StatusOr<int> CountSteps(const Schedule& lowered);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STEP_GRID_H_
