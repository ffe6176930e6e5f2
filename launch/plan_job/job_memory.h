#ifndef SIPHON_LAUNCH_PLAN_JOB_JOB_MEMORY_H_
#define SIPHON_LAUNCH_PLAN_JOB_JOB_MEMORY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "planner/memory/memory_estimate.h"
#include "planner/model_spec.h"
#include "planner/training_plan.h"

namespace siphon {

// A job with what was decided for it. `schedule_csv` is the text that ReadScheduleFile gives.
struct PlannedJob {
  const JobConfig& job;
  const ModelSpec& model;
  const TrainingPlan& plan;
  absl::string_view schedule_csv = "";
  const ModelProfile* profile = nullptr;  // measured at the job's microbatch
};

// What the workers' norms take beside 16-bit activations.
HeldVectors HeldVectorsOf(const PipelineConfig& pipeline);

// What a memory model is told about the job; points into `planned`. `communication` has the rings
// of its transport; where these hold every boundary, what is sent is copied into them. Workers of
// transport auto are taken to be on one host. Errors: InvalidArgument at train.precision.
absl::StatusOr<MemoryInputs> MemoryInputsOf(const PlannedJob& planned);

enum class Accounting { kRuntime, kPublished };

// Bytes of the job's training step, with the rings of its transport. Pure. Errors: as
// EstimateRuntime; InvalidArgument at train.precision.
absl::StatusOr<MemoryEstimate> EstimateJob(const PlannedJob& planned, Accounting accounting);

// memory.capacity less memory.reserve; nothing without a limit.
std::optional<Bytes> WorkerCapacity(const JobConfig& job, WorkerId worker);

// The worker that exceeds its capacity most.
struct Misfit {
  WorkerId worker;
  Bytes needed;
  Bytes capacity;
  Bytes missing() const { return needed - capacity; }
};
std::optional<Misfit> FindMisfit(const JobConfig& job, const MemoryEstimate& estimate);

// What suggested capacities are multiples of: mebibytes, or kibibytes where a worker needs only a
// few mebibytes.
struct CapacityUnit {
  Bytes bytes;
  absl::string_view name;  // "MiB"
};
CapacityUnit CapacityUnitFor(Bytes needed);

// One change of the job by which it fits.
struct FittingChange {
  std::string setting;  // "train.microbatch=2", as for --set
  std::string meaning;  // "smaller microbatches"
  Bytes largest;        // worker with it
};
// Tries changes from the smallest on, each alone: another schedule, smaller microbatches, more
// stages, fused attention, no dropout, an optimizer with less state, smaller microbatches on more
// stages; at last more capacity, which always fits. One of each sort. A model that is not built in
// keeps its own options.
std::vector<FittingChange> ChangesThatFit(const PlannedJob& planned);

// ResourceExhausted when the runtime accounting of a worker exceeds memory.capacity: names worker,
// predicted peak, capacity and the smallest change with which everything can be kept. OK without a
// capacity, and for models with layers that nothing is known of.
absl::Status CheckFits(const PlannedJob& planned);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PLAN_JOB_JOB_MEMORY_H_
