#ifndef SIPHON_PLANNER_BASELINES_BASELINE_PROBLEM_H_
#define SIPHON_PLANNER_BASELINES_BASELINE_PROBLEM_H_

#include <algorithm>

#include "absl/status/status.h"
#include "planner/model_profile.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// A step of data-parallel training on all devices of a server: each of them runs the whole model on
// `microbatches` microbatches of its own.
struct BaselineProblem {
  ModelProfile profile;  // at the microbatch
  Topology topology;
  int microbatches = 1;  // of a device and step
  Bytes capacity;        // of each device
  Nanos host_step;       // optimizer step of all parameters on the host
};

// What a step takes.
struct BaselineStep {
  Nanos step_time;
  Nanos computing;  // of a device: forwards, backwards and recomputation
  bool recomputes = false;
  Bytes device;     // at a device's fullest
  Bytes host;       // held there, for all devices together
  Bytes drives;     // likewise
  Bytes to_host;    // copied in a step, all devices together
  Bytes from_host;  // likewise
  friend bool operator==(const BaselineStep&, const BaselineStep&) = default;
};

// Sums over all layers of a profile, and the largest layers.
struct ProfileTotals {
  Nanos forward;
  Nanos backward;
  Nanos optimizer;
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_state;
  Bytes saved;       // by one microbatch's forward
  Bytes boundaries;  // layers' outputs: what stays where all else is recomputed
  Bytes largest_parameters;
  Bytes largest_gradients;
  Bytes largest_saved;
  Bytes largest_workspace;
};
ProfileTotals TotalsOf(const ModelProfile& profile);

// Something that does one thing at a time, in the order in which it is asked.
class BaselineLane {
 public:
  // Returns when the work ends that cannot begin before `ready`.
  Nanos Run(Nanos ready, Nanos duration) { return end_ = std::max(end_, ready) + duration; }
  Nanos end() const { return end_; }

 private:
  Nanos end_;
};

// Errors: InvalidArgument for no devices, layers, microbatches or capacity, for several servers,
// and as CheckTopology.
absl::Status CheckBaselineProblem(const BaselineProblem& problem);

// Errors: ResourceExhausted if devices, host or drives (the topology's, 0: not known) hold less
// than the step says, with the numbers.
absl::Status CheckRoom(const BaselineProblem& problem, const BaselineStep& step);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BASELINES_BASELINE_PROBLEM_H_
