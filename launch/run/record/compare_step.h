#ifndef SIPHON_LAUNCH_RUN_RECORD_COMPARE_STEP_H_
#define SIPHON_LAUNCH_RUN_RECORD_COMPARE_STEP_H_

#include <array>
#include <string>
#include <vector>

#include "planner/action.h"
#include "planner/simulator/simulated_step.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// What all workers together spent on one kind of thing in a step.
struct KindTime {
  std::string name;  // "F", "RECOMPUTE", ..., "waits for copies", "other waits"
  Nanos predicted;
  Nanos measured;
  Nanos Difference() const { return measured - predicted; }
};

// What all workers together did in a step. Idle time behind a worker's last action is no wait.
struct WorkersTime {
  std::array<Nanos, kActionKinds> busy{};
  Nanos copies;  // waits for them
  Nanos other;   // other waits
  Nanos Busy() const;
};
WorkersTime TimeOf(const SimulatedStep& step);
WorkersTime TimeOf(const std::vector<WorkerTimeline>& workers);

// Kinds of actions that took any time, in ActionKind's order, then the two kinds of waits.
std::vector<KindTime> CompareKinds(const SimulatedStep& predicted,
                                   const std::vector<WorkerTimeline>& measured);

// The kind that took longer or shorter than predicted by most; null where there is no difference.
const KindTime* LargestDifference(const std::vector<KindTime>& kinds);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_COMPARE_STEP_H_
