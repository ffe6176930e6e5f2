#ifndef SIPHON_TESTS_PIPELINE_FAKE_JOB_H_
#define SIPHON_TESTS_PIPELINE_FAKE_JOB_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/stage_worker.h"
#include "planner/schedule.h"
#include "tests/pipeline/fake_stage.h"
#include "tests/pipeline/transport/thread_worlds.h"
#include "tests/support/in_process_parking.h"

namespace siphon {

enum class JobTransport { kInProcess, kRing };

// All workers of a job with fake stages, in threads. Stage s has layers 2 s and 2 s + 1, and three
// tensor groups: the activations of the one, of the other, and the parameters of both. When one
// fails, the liveness check of the others says so.
class FakeJob {
 public:
  // `lowered`: what the job will run, where that moves tensors: the first group goes to the host,
  // the second to devices 5 and 6.
  FakeJob(const Schedule& schedule, std::vector<SharedParameter> shared, JobTransport transport,
          const Schedule* lowered = nullptr);
  ~FakeJob();

  // Runs each worker's program; element w is worker w's result.
  std::vector<absl::StatusOr<StepReport>> Run(const Schedule& lowered, StepMode mode,
                                              const StepEnd& end);

  // Makes `worker` fail in its action number `action`, counted from 0, of the next run.
  void FailAt(WorkerId worker, int action);

  const FakeStage& stage(int stage) const { return *stages_[static_cast<size_t>(stage)]; }
  const WorkerLayout& layout() const { return layout_; }

 private:
  struct Shared;
  WorkerLayout layout_;
  std::vector<std::unique_ptr<FakeStage>> stages_;
  std::unique_ptr<Shared> shared_;
  ThreadJob job_;
  std::vector<InProcessParking> parkings_;  // empty: nothing moves
  std::vector<std::unique_ptr<StageWorker>> workers_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_FAKE_JOB_H_
