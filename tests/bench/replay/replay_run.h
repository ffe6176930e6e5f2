#ifndef SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_
#define SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/memory_plan.h"
#include "planner/simulator/simulated_step.h"
#include "planner/strategies/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// A plan that was run by workers in threads, beside what the simulator says of it.
struct ReplayResult {
  SimulatedStep predicted;
  std::vector<Nanos> steps;                // measured, ascending
  Nanos predicted_swap_wait;               // of all workers, for copies
  Nanos swap_wait;                         // measured, in the last step
  std::map<Placement, Bytes> swapped_out;  // of all workers, a step
  // The most that a worker's books counted over what the simulator says of its own memory without
  // what it lends; and the most that a device holds, all that it lends at its peak included, as a
  // part of its capacity.
  Bytes peak_above;
  double fullest = 0;

  Nanos Median() const { return steps[steps.size() / 2]; }
};

// Runs `planned` for `problem` (ReplayProblem::run): one step to warm up, then `steps`. Every byte
// that moves is looked at. Errors: those of the simulator, of SyntheticJob and of the workers.
absl::StatusOr<ReplayResult> RunReplay(const PlanningProblem& problem, const PlannedStep& planned,
                                       int steps);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_
