#ifndef SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_JOB_H_
#define SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_worker.h"
#include "pipeline/synthetic/pace_transports.h"
#include "pipeline/synthetic/work_clock.h"
#include "planner/memory_plan.h"
#include "planner/model_profile.h"
#include "planner/schedule.h"
#include "planner/stage_partition.h"
#include "planner/units.h"
#include "swap/memory_ledger.h"
#include "swap/parking_layout.h"
#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/support/in_process_parking.h"

namespace siphon {

// What a job of synthetic stages is made of.
struct SyntheticJobParts {
  ModelProfile profile;
  StagePartition partition;
  Schedule schedule;  // of training, lowered
  MemoryPlan memory;
  std::vector<Bytes> capacity;                             // [worker]; empty: no limit
  std::function<WorkClock()> make_clock = MonotonicClock;  // called once a worker
  // Of a worker's link to where it parks; null: as fast as memory.
  std::function<CopyLinkRate(WorkerId, const ParkingPlace&)> rate_of;
  // What else is special about a worker's parking; null: nothing.
  std::function<void(WorkerId, InProcessParkingOptions&)> adjust_parking;
  // The transports; null: in process. They are gone before the parts.
  std::function<ThreadJob(const WorkerLayout&, const LivenessCheck&)> connect;
  StageWorker::ActionObserver observer;  // of all workers, each in its thread; may be null
  std::vector<Nanos> host_step;   // [stage] of optimizer steps on the host; empty: they take none
  MessageRateOf message_rate_of;  // of the machine's time; null: messages take none
};

// A step of all workers.
struct SyntheticStep {
  std::vector<absl::StatusOr<StepReport>> reports;  // [worker]
  Nanos time;                                       // until the last worker was through
};

// All workers of a job with synthetic stages, in threads, connected in process. When one fails, the
// liveness check of the others says so.
class SyntheticJob {
 public:
  // Errors: those of MakeSyntheticStage and LayOutParking.
  static absl::StatusOr<std::unique_ptr<SyntheticJob>> Make(SyntheticJobParts parts);
  ~SyntheticJob();

  // Runs `programs` of a training step or an evaluation (step `step`, microbatches of the
  // schedule).
  SyntheticStep Run(const Schedule& programs, StepMode mode, int64_t step, const StepEnd& end);

  // Bytes that other workers park on the device.
  Bytes LentBy(DeviceId device) const { return LentBytes(layouts_, device); }
  MemoryLedger& ledger(int worker) { return *ledgers_[static_cast<size_t>(worker)]; }
  StageCompute& stage(int stage) { return *stages_[static_cast<size_t>(stage)]; }
  const Schedule& schedule() const { return parts_.schedule; }

 private:
  struct Shared;
  explicit SyntheticJob(SyntheticJobParts parts);
  absl::Status MakeWorkers();
  absl::Status MakeParkings();
  Nanos HostStepOf(StageId stage) const;

  SyntheticJobParts parts_;
  std::vector<std::unique_ptr<MemoryLedger>> ledgers_;  // [worker]
  std::vector<std::unique_ptr<StageCompute>> stages_;   // [stage]
  std::unique_ptr<Shared> shared_;
  ThreadJob job_;
  std::vector<WorkerParking> layouts_;                       // [worker]
  std::vector<std::unique_ptr<InProcessParking>> parkings_;  // [worker]
  std::vector<std::unique_ptr<StageWorker>> workers_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_SYNTHETIC_SYNTHETIC_JOB_H_
