#ifndef SIPHON_LAUNCH_RUN_LAYER_PROFILE_MEASURE_CORES_H_
#define SIPHON_LAUNCH_RUN_LAYER_PROFILE_MEASURE_CORES_H_

#include "absl/status/statusor.h"
#include "launch/data/batches.h"
#include "launch/run/job/prepare_job.h"
#include "planner/simulator/engine/shared_cores.h"

namespace siphon {

// Runs the job's layers in 1, 2, ... threads at the same time, as many as the job has workers and
// this process has cores for, and compares what a training step takes each of them: workers that
// have a core each may still share caches, memory and, with hyper-threading, the core itself. The
// sizes take turns, so that a machine that becomes slower spoils no ratio. Entries beyond the job's
// workers are those of the last size measured, for each core alike.
//
// The answer has an entry for each number of workers that have cores of their own here, at least
// one; entry n - 1 is 1 to 1000 * n, the first 1000.
//
// Each thread holds a model of its own. Errors: as of MakeTorchStage and StageCompute.
absl::StatusOr<CoreSharing> MeasureCores(const PreparedJob& job, const Batch& batch, int rounds);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_LAYER_PROFILE_MEASURE_CORES_H_
