#ifndef SIPHON_PLANNER_BOUNDS_BOUND_FACTS_H_
#define SIPHON_PLANNER_BOUNDS_BOUND_FACTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/facts/full_moments.h"
#include "planner/bounds/facts/joint_facts.h"
#include "planner/bounds/facts/memory_windows.h"
#include "planner/bounds/facts/step_paths.h"
#include "planner/bounds/facts/swap_limits.h"
#include "planner/drafts/planning_problem.h"
#include "planner/units.h"

namespace siphon {

// The time of a worker between two of its windows, from begin to begin of their backwards; before
// the first window from its first compute action, behind the last one to the end of the step.
//
// All that a window's microbatches saved was saved in the segment before it, since no two windows
// share a live one; and is used in the segment behind it. So what is away at the window left its
// worker in the one segment, and comes back or is computed again in the other.
struct Segment {
  Nanos least;  // longest path from begin to end, whatever is away
  // The same by way of the worker's own actions up to the last backward of the window at the
  // segment's begin: what is computed again comes on top. 0 for the segment before all windows.
  Nanos least_with_recompute;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// The part of a worker's last segment up to its first STEP: at that begin gradients are complete,
// so that only then optimizer state is changed and leaves, or gradients leave for a step on the
// host.
struct StepPart {
  bool open = false;  // the worker has a STEP, and its program may be searched
  // From the begin of the last window to the end of the last compute action before the STEP, and
  // the same by way of the worker's own actions up to the window's last backward.
  Nanos least;
  Nanos least_with_recompute;
  Nanos head;  // from the begin of the step to the end of that action
  friend bool operator==(const StepPart&, const StepPart&) = default;
};

// One worker with windows.
struct WindowedWorker {
  int worker = 0;  // of one replica
  Nanos head;      // before its first compute action
  // Of its own actions, from head to the end of the step, and what must follow the last of them.
  Nanos own_path;
  std::vector<Segment> segments;  // one more than windows
  StepPart step;
};

// What optimizer steps of a worker on the host save and cost (UpdatePlace::kHost).
struct HostStep {
  bool open = false;  // the problem knows the host's time, and the worker reaches the host
  // At least so many bytes of parameters come in, and of gradients leave, a byte of optimizer state
  // that stays with the host; those that were swapped to the host anyway count for both.
  double parameters = 0;
  double gradients = 0;
  // And of the layers that step there it has at most so many.
  double most_parameters = 0;
  double most_gradients = 0;
  // Nanoseconds of the host a byte of optimizer state.
  double time = 0;
};

// What all bounds of a problem are made from.
struct BoundFacts {
  int replicas = 1;
  SwapLimits limits;  // [worker of one replica], each the best of its replicas
  StepPaths paths;
  std::vector<WorkerMemory> memory;      // [worker of one replica]
  std::vector<HostStep> host_steps;      // [worker of one replica]
  std::vector<WindowedWorker> windowed;  // workers that have windows
  JointFacts joint;
  std::vector<FullMoment> moments;
  // Weights change within the step, so that a backward may use older ones than those that are away.
  bool updates_within = false;
  Nanos work;  // of all workers and replicas, without recomputation
  // What they get done together at most, in thousandths of one core; 0: each has its own.
  int64_t most_together = 0;

  // Of a worker's layers with a window's multiplicity: microbatches that wait times equal layers.
  int64_t Count(int worker, const MemoryWindow& window, const LayerKind& kind) const;
};

// Errors: as CheckPlanningProblem promises not to have; FailedPrecondition for a schedule whose
// actions wait for each other in a circle.
absl::StatusOr<BoundFacts> BoundFactsOf(const PlanningProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_BOUND_FACTS_H_
