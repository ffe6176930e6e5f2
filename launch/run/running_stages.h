#ifndef SIPHON_LAUNCH_RUN_RUNNING_STAGES_H_
#define SIPHON_LAUNCH_RUN_RUNNING_STAGES_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/data/batches.h"
#include "launch/run/follow/plan_follower.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/training_state.h"
#include "launch/run/seat/worker_seat.h"
#include "pipeline/stage_compute.h"
#include "pipeline/stage_worker.h"
#include "planner/schedule.h"

namespace siphon {

// The stages of one worker, and the StageWorker that runs their actions by the plan in force.
//
// Thread-safety: one thread, the worker's. The arguments outlive this.
class RunningStages {
 public:
  RunningStages(const PreparedJob& prepared, const WorkerSeat& seat)
      : prepared_(prepared), seat_(seat) {}

  // Once, behind PlanFollower::TakeRoom: with what the plan has away between steps away. Steps on
  // the host have not begun (HostSteps::Begin). Errors: as MakeTorchStage and StateSwaps::SendAway.
  absl::Status Make(PlanFollower& follower);

  // From Make on: a worker for the plan in force, when that is another one; and none in between.
  void MakeWorker(PlanFollower& follower);
  void DropWorker() { worker_.reset(); }

  const StageMap& stages() const { return stages_; }
  bool Has(StageId stage) const { return stages_.contains(stage); }
  // The first and the last stage of the model read data.
  bool NeedsData() const;
  std::map<StageId, StageCompute*> Computes() const;
  StageWorker& worker() { return *worker_; }
  WorkerStages ForCheckpoint() { return {&stages_, &worker_->state(), &window_}; }
  WorkerLayout LayoutOf(const FollowedPlan& followed) const;

  // Runs this worker's program of `schedule`. `step` counts from 0. Errors: as
  // StageWorker::RunStep.
  absl::StatusOr<StepReport> RunBatch(const Schedule& schedule, const Batch& batch, int64_t step,
                                      StepMode mode, const StepEnd& end);

 private:
  const PreparedJob& prepared_;
  const WorkerSeat& seat_;
  StageMap stages_;
  StateWindow window_;
  std::unique_ptr<StageWorker> worker_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RUNNING_STAGES_H_
