#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PLAN_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/units.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

enum class WeightTaskKind {
  kForward,
  kBackward,
  kSend,   // the weight to the host; it stays on the device until it is deleted
  kFetch,  // the weight from the host; holds its memory from the start
};

struct WeightTask {
  WeightTaskKind kind = WeightTaskKind::kForward;
  int layer = 0;
  std::vector<int> after;  // earlier tasks of the plan that must have ended
  friend bool operator==(const WeightTask&, const WeightTask&) = default;
};

// A weight leaves device memory at the moment at which all of `after` have ended.
struct WeightDeletion {
  int layer = 0;
  std::vector<int> after;  // at least one task of the plan
  friend bool operator==(const WeightDeletion&, const WeightDeletion&) = default;
};

// One step, from the start of B_L to the start of the next: what runs, and after what. No times, so
// that a runtime can follow it. Computation, sends and fetches are a lane each, which runs its
// tasks in the order of the list. The next step begins when all tasks of this one have ended.
struct WeightOffloadPlan {
  std::vector<WeightTask> tasks;
  std::vector<WeightDeletion> deletions;
  std::vector<bool> present;  // [layer]: in device memory when a step begins
  friend bool operator==(const WeightOffloadPlan&, const WeightOffloadPlan&) = default;
};

struct WeightTaskInterval {
  Nanos begin;
  Nanos end;
  friend bool operator==(const WeightTaskInterval&, const WeightTaskInterval&) = default;
};

struct WeightOffloadStep {
  Nanos step_time;
  Nanos idle;  // step time less that of all operations
  Bytes peak;  // of device memory: weights, gradients, activations
  Bytes sent;
  Bytes fetched;
  std::vector<WeightTaskInterval> intervals;  // [task of the plan]
  friend bool operator==(const WeightOffloadStep&, const WeightOffloadStep&) = default;
};

// Runs the plan, every task as soon as its lane and the tasks before it allow, and follows where
// each weight is through two steps, so that what one step leaves is what the next one finds.
//
// Guarantees, at every moment: memory within capacity; an operation has its weight for all of its
// time; what is fetched is on the host in its latest version; what is deleted is too, and is not in
// use; no weight is sent while its backward changes it.
// Errors: FailedPrecondition naming the first broken promise, with step, time and task;
// InvalidArgument as for CheckWeightOffloadProblem. O(n log n) in the tasks.
absl::StatusOr<WeightOffloadStep> SimulateWeightOffload(const WeightOffloadProblem& problem,
                                                        const WeightOffloadPlan& plan);

// "B3", "F3", "send 3", "fetch 3".
std::string TaskName(const WeightTask& task);
// "B3 [0, 10)" lines in the order of begin, then of the plan, with "delete 3 at 10" between them.
std::string ToString(const WeightOffloadPlan& plan, const WeightOffloadStep& step);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_OFFLOAD_PLAN_H_
