#ifndef SIPHON_PLANNER_BOUNDS_JOINT_FACTS_H_
#define SIPHON_PLANNER_BOUNDS_JOINT_FACTS_H_

#include <cstddef>
#include <vector>

#include "planner/bounds/facts/memory_windows.h"
#include "planner/bounds/facts/step_paths.h"
#include "planner/schedule.h"
#include "planner/units.h"

namespace siphon {

// The `window`-th window of a worker.
struct WindowPlace {
  int worker = 0;
  int window = 0;
  friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
};

// The time between two moments of one worker, and the windows of all workers whose copies, whatever
// the plan, begin and end within it.
struct StepSpan {
  static constexpr int kOpen = -1;

  int worker = 0;
  int from = kOpen;                    // begin of this window; kOpen: begin of the step
  int to = kOpen;                      // likewise; kOpen: end of the step
  std::vector<WindowPlace> leaving;    // what they have away leaves within the span
  std::vector<WindowPlace> returning;  // and is back, if it was swapped
  friend bool operator==(const StepSpan&, const StepSpan&) = default;
};

// Of all workers together. Beyond it rows of many windows would take the solver seconds.
inline constexpr size_t kMostJointActions = 6'000;

// What the windows of several workers mean together, from the order of the schedule's actions
// alone. Empty for replicas, and for schedules of too many actions: whether it is there does not
// hang on capacities.
struct JointFacts {
  std::vector<StepSpan> spans;
  // [worker]: workers whose optimizer steps cannot begin before the worker has computed all its
  // backwards; itself included. Empty for workers that have no STEP.
  std::vector<std::vector<int>> steps_behind;
};

// Place of the worker's first STEP, and of the last compute action before it; kNoPlace without.
inline constexpr int kNoPlace = -1;
struct StepPlaces {
  int last_compute = kNoPlace;
  int first_step = kNoPlace;
};
StepPlaces StepPlacesOf(const std::vector<Action>& program);

// O(windows * (actions + windows)).
JointFacts JointFactsOf(const Schedule& schedule, const StepPaths& paths,
                        const std::vector<WorkerMemory>& memory);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_JOINT_FACTS_H_
