#ifndef SIPHON_PLANNER_PUBLISHED_MPRESS_RUN_H_
#define SIPHON_PLANNER_PUBLISHED_MPRESS_RUN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/baselines/memory_baseline.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/published/mpress_instance.h"
#include "planner/simulator/simulate.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/units.h"

namespace siphon {

// Device memory that one way of saving spares, as Table IV counts it.
struct MemorySaved {
  Bytes bytes;                  // all stages together
  std::vector<StageId> stages;  // where it is used, ascending
  friend bool operator==(const MemorySaved&, const MemorySaved&) = default;
};

// Activations count for all microbatches that are alive at once, weights for all older versions;
// what is recomputed, without the inputs that stay; an optimizer step on the host, with the state
// that is there then. Requires: `planned` is a plan for `problem`.
MemorySaved SavedBy(Placement placement, const PlanningProblem& problem,
                    const PlannedStep& planned);

// How a strategy does on an instance.
struct MpressRun {
  std::string model;
  std::string strategy;
  // ResourceExhausted: it does not fit; FailedPrecondition: the strategy is not for such a
  // schedule. The rest is then empty.
  absl::Status status;
  Nanos step_time;
  double samples_per_second = 0;
  double tflops = 0;  // of all devices together
  MemorySaved recomputed;
  MemorySaved host;
  MemorySaved peers;
  Bytes overflow;  // demand of all stages with everything kept, beyond what all devices have
};

// Why a run does not fit, in a line. Requires: its status is an error.
std::string ReasonOf(const MpressRun& run);

// Everything kept, without limits. Errors: as Simulate.
absl::StatusOr<SimulatedStep> KeptStep(const PlanningProblem& problem);

// Errors: those of the strategy that mean neither; as KeptStep.
absl::StatusOr<MpressRun> RunInstance(const MpressInstance& instance,
                                      const MemoryStrategy& strategy);

// How much a data-parallel baseline computes between two steps of the optimizer; the paper does not
// say it. Its name gets "/1" with one microbatch.
enum class BaselineStepSize {
  kAsPipelines,    // all devices together as many microbatches as the pipeline, rounded up
  kOneMicrobatch,  // of each device
};

// The same for a baseline; nothing is said of what it saves.
absl::StatusOr<MpressRun> RunBaseline(const MpressInstance& instance,
                                      const MemoryBaseline& baseline, BaselineStepSize size);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PUBLISHED_MPRESS_RUN_H_
