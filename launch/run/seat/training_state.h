#ifndef SIPHON_LAUNCH_RUN_SEAT_TRAINING_STATE_H_
#define SIPHON_LAUNCH_RUN_SEAT_TRAINING_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/coordinate.h"
#include "launch/run/seat/state_window.h"
#include "pipeline/loss_scale.h"
#include "pipeline/stage_compute.h"
#include "pipeline/state_swaps.h"

namespace siphon {

// Called when a worker enters a phase outside the steps ("reading the checkpoint"), and while a
// long one goes on; an error ends that phase.
using PhaseObserver = std::function<absl::Status(const std::string& phase)>;

using StageMap = std::map<StageId, std::unique_ptr<StageCompute>>;

// The stages of a worker, and what of their state is away between steps.
struct WorkerStages {
  const StageMap* stages = nullptr;
  StateSwaps* swaps = nullptr;
  StateWindow* window = nullptr;
};

// Where a run stands between two steps; with the stages' tensors all that a checkpoint has to hold.
struct Progress {
  int64_t step = 0;              // steps done
  int64_t samples_consumed = 0;  // of the training data
  LossScale loss_scale;          // of the next step; changes with fp16 alone
  std::string checkpoint;        // where it was read from; empty on a fresh start
};

// The directory that holds the job's checkpoints.
std::string CheckpointDirectory(const JobConfig& job);

// The checkpoint that a run would go on from, empty on a fresh start. It can begin where
// `checkpoint.resume` and `model.init_from` say, as far as that shows without the stages: the
// checkpoint is there, complete in its form, and of this optimizer. To be asked before a plan is
// searched for and any worker starts. Errors: as of RestoreState.
absl::StatusOr<std::string> FindStart(const JobConfig& job);

// Collective: brings the stages to where `checkpoint.resume` says, and to `model.init_from` on a
// fresh start. Worker 0 chooses the checkpoint, so that all take the same. Notes about what will
// differ (threads, order of sums, data) are appended to `warnings` of worker 0. Errors: as of
// Checkpoint, on all workers alike; nothing is overwritten.
absl::StatusOr<Progress> RestoreState(const PreparedJob& prepared, const WorkerStages& stages,
                                      Coordinator& coordinator, const PhaseObserver& at_phase,
                                      std::vector<std::string>& warnings);

// Collective: writes a checkpoint, complete or absent. Returns its path.
// Errors: on all workers alike; the earlier checkpoints are intact then.
absl::StatusOr<std::string> SaveState(const PreparedJob& prepared, const WorkerStages& stages,
                                      Coordinator& coordinator, const Progress& progress,
                                      const PhaseObserver& at_phase);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_TRAINING_STATE_H_
