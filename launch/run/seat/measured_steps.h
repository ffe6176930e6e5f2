#ifndef SIPHON_LAUNCH_RUN_SEAT_MEASURED_STEPS_H_
#define SIPHON_LAUNCH_RUN_SEAT_MEASURED_STEPS_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/profile/measured_costs.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/link_watch.h"
#include "planner/timeline.h"
#include "planner/units.h"
#include "swap/device/link_queues.h"
#include "swap/parking_layout.h"

namespace siphon {

// What went over the links of a worker to one place.
struct PlaceUse {
  ParkingPlace place;
  CopyLinkUse use;
};

// What all workers were found to take in some steps.
struct MeasuredRun {
  Nanos step;                                // worker 0's median
  std::vector<ActionTimes> stages;           // [stage], medians
  std::vector<std::vector<PlaceUse>> links;  // [worker], sums
};

// What one worker takes in the first steps of a run, without those that warm up.
//
// Thread-safety: one thread, the worker's.
class MeasuredSteps {
 public:
  static constexpr int kFirstStep = 3;  // of the run
  static constexpr int kLastStep = 7;

  explicit MeasuredSteps(int stages) : stages_(static_cast<size_t>(stages)) {}

  // After each step.
  void Note(const WorkerTimeline& timeline, Nanos step, const std::vector<LinkState>& links);
  // Once: behind the last step that counts.
  bool Complete() const { return noted_ == kLastStep; }
  // Collective, when complete.
  absl::StatusOr<MeasuredRun> Gather(Coordinator& coordinator) const;

 private:
  int noted_ = 0;
  std::vector<Nanos> steps_;
  std::vector<std::vector<ActionTimes>> stages_;  // [stage][step]; nothing of those elsewhere
  std::map<ParkingPlace, CopyLinkUse> links_;
};

// The one in the middle, of an even number the later; 0 of none.
Nanos MedianOf(std::vector<Nanos> times);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_MEASURED_STEPS_H_
