#ifndef SIPHON_PLANNER_TIMELINE_H_
#define SIPHON_PLANNER_TIMELINE_H_

#include <vector>

#include "planner/action.h"
#include "planner/units.h"

namespace siphon {

enum class IntervalKind { kBusy, kWait };

// What one worker did in [begin, end), in nanoseconds since the step began.
struct Interval {
  Action action;
  IntervalKind kind =
      IntervalKind::kBusy;  // kWait: the action could not start, or go on, for want of a message
  Nanos begin;
  Nanos end;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Intervals of one worker in order, without overlap. The same for a predicted and a measured step.
using WorkerTimeline = std::vector<Interval>;

}  // namespace siphon

#endif  // SIPHON_PLANNER_TIMELINE_H_
