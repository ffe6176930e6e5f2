#ifndef SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_
#define SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/profile/plan_live_step.h"
#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

// A plan that was run by workers in threads, beside what the simulator says of it.
struct ReplayResult {
  std::vector<Nanos> steps;                // measured, ascending
  Nanos predicted_swap_wait;               // of all workers, for copies
  Nanos swap_wait;                         // measured, in the last step
  std::map<Placement, Bytes> swapped_out;  // of all workers, a step
  // The most that a worker's books counted, with all that it lends, over what was predicted; and of
  // its capacity.
  Bytes peak_above;
  double fullest = 0;

  Nanos Median() const { return steps[steps.size() / 2]; }
};

// Runs the plan: one step to warm up, then `steps`. Every byte
// that moves is looked at. Errors: those of the simulator, of SyntheticJob and of the workers.
absl::StatusOr<ReplayResult> RunReplay(const LiveStep& live, int steps);

}  // namespace siphon

#endif  // SIPHON_TESTS_BENCH_REPLAY_REPLAY_RUN_H_
