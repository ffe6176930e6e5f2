#ifndef SIPHON_LAUNCH_RUN_RECORD_PLAN_DEVIATION_H_
#define SIPHON_LAUNCH_RUN_RECORD_PLAN_DEVIATION_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/output/metrics.h"
#include "planner/simulator/simulated_step.h"
#include "planner/units.h"

namespace siphon {

// Whether steps of a run are as predicted; says once where not.
//
// Peaks count from the first step on: a worker that holds more than 5 % above its predicted peak
// (sums over layers alone are within 3.4 %). Times: the median of the steps 3 to 9, more than a
// quarter above the prediction (machines are busy with other things now and then). The cause is
// what grew by most: computing, waits for copies or other waits.
class PlanDeviation {
 public:
  // What the prediction knows of this job and machine; it is not held to the rest.
  struct Known {
    bool times = false;   // costs were measured here
    bool memory = false;  // of every layer
  };
  PlanDeviation(const SimulatedStep& predicted, Known known);

  // A sentence for the user, when there is one.
  std::optional<std::string> Note(const StepMetrics& step);

 private:
  struct Times {                      // of all workers together, but for the step
    Nanos step, busy, copies, other;  // as WorkersTime
  };

  std::optional<std::string> NotePeak(const StepMetrics& step);
  std::optional<std::string> NoteTime();

  Times predicted_;
  std::vector<Bytes> peaks_;  // [worker]; empty once it was said
  bool watches_time_;
  int steps_ = 0;
  std::vector<Times> measured_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_PLAN_DEVIATION_H_
