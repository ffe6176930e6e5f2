#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_LIMITS_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_LIMITS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "launch/commands/plan_study.h"
#include "planner/ids.h"
#include "planner/simulator/simulated_step.h"
#include "planner/units.h"

namespace siphon {

// What one worker did with the time of a step. All members together are the step's time.
struct TimeShares {
  Nanos compute;  // F, B, I, W and optimizer steps
  Nanos recompute;
  std::array<Nanos, kWaitCauses> waits{};
  Nanos idle;  // before its first wait or action, and after its last
  friend bool operator==(const TimeShares&, const TimeShares&) = default;
};
std::vector<TimeShares> SharesOfWorkers(const SimulatedStep& step);

// What a faster step would have to change.
enum class StepLimit {
  kCompute,    // of one worker, which is busy nearly all the time
  kPipeline,   // filling, draining and waiting for neighbours
  kTransfers,  // messages between workers
  kSwaps,      // waits for tensors on their way
  kRecompute,  // of activations
  kHostSteps,  // optimizer steps on the host, when all workers are through
};

struct StepDiagnosis {
  StepLimit limit = StepLimit::kPipeline;
  int worker = 0;       // the one that the limit is largest on
  Nanos saving_memory;  // by which the step is longer than with everything kept; 0: not at all
  std::optional<LaneTimeline> busiest;  // of the lanes that carried swapped tensors or messages
  // Where a worker waits for swaps or messages: its own lane that is in use most of that time, and
  // for how long of it.
  std::optional<LaneTimeline> binding;
  Nanos in_use;
  // What that lane's copies share with others where these slow them, by its name, and for how long
  // of `in_use`; empty: they are hardly slowed, so the lane's own path is what counts.
  std::string shared;
  Nanos slowed;
  // Of the worker, where it saves memory otherwise too: all of them, if none has more to lend.
  std::vector<DeviceId> full_lenders;
};
// `step` beside the same step with everything kept. `device_of_worker` empty: worker w on w.
// Lenders are not looked at.
StepDiagnosis Diagnose(const SimulatedStep& step, const SimulatedStep& kept,
                       const std::vector<DeviceId>& device_of_worker = {});

// Of the planned step, lenders included. Requires: it fits.
StepDiagnosis DiagnosePlan(const StudiedPlan& studied);

// "swaps: worker 3 waits 12.0 ms for tensors on their way; ...", a sentence or two.
std::string DiagnosisText(const StepDiagnosis& diagnosis, const SimulatedStep& step);
// "compute", "pipeline", "transfers", "swaps", "recompute", "host_steps".
absl::string_view StepLimitName(StepLimit limit);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_LIMITS_H_
