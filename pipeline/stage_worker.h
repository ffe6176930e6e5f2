#ifndef SIPHON_PIPELINE_STAGE_WORKER_H_
#define SIPHON_PIPELINE_STAGE_WORKER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_compute.h"
#include "pipeline/transport/transport.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"
#include "planner/timeline.h"

namespace siphon {

// What all workers know of the job's shape.
struct WorkerLayout {
  std::vector<WorkerId> worker_of_stage;
  std::vector<SharedParameter> shared_parameters;
  std::vector<int> owned_parameters;  // number of parameters that each *stage* owns, for the norm
};

// How a step ends; decided by the caller, the same on all workers.
struct StepEnd {
  int64_t update = 1;
  double learning_rate = 0;
  double clip_norm = 0;  // 0: no clipping
};

struct StepReport {
  std::vector<float> losses;  // of each microbatch, only on the worker of the last stage
  double gradient_norm = 0;   // global, before clipping; the same on all workers
  int peak_live_microbatches = 0;
  WorkerTimeline timeline;
};

// Executes one program strictly in order; no policy. A SEND starts and goes on, its buffer is released when it is done; a
// RECV starts; a compute action waits for what it needs; at the end of the step every transfer is done and no boundary
// buffer is live. The first error ends it and names the action ("worker 2 action 17 2F5: ...").
//
// Thread-safety: one thread.
class StageWorker {
 public:
  // Called before each action, for the outside to see where a worker is.
  using ActionObserver = std::function<void(const Action&)>;

  StageWorker(WorkerId me, WorkerLayout layout, std::map<StageId, StageCompute*> stages, Transport* transport,
              ActionObserver observer);

  // Runs a lowered program of one training step or one evaluation (forward only, `end` unused).
  absl::StatusOr<StepReport> RunStep(const std::vector<Action>& program, const StepInputs& inputs, const StepEnd& end);

 private:
  WorkerId me_;
  WorkerLayout layout_;
  std::map<StageId, StageCompute*> stages_;
  Transport* transport_;
  ActionObserver observer_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_STAGE_WORKER_H_
