#ifndef SIPHON_LAUNCH_RUN_TRAINER_H_
#define SIPHON_LAUNCH_RUN_TRAINER_H_

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/run/job/model_factory.h"
#include "launch/run/record/run_outcome.h"

namespace siphon {

// Trains a model with every worker a thread of this process: for tests, notebooks and small jobs.
//
//   siphon::Trainer trainer(job, [](const siphon::ModelOptions&) { return MyModel(); });
//   absl::StatusOr<siphon::RunOutcome> outcome = trainer.Train();
class Trainer {
 public:
  explicit Trainer(JobConfig job,
                   ModelFactory factory = nullptr);  // no factory: model.kind decides
  absl::StatusOr<RunOutcome> Train();

 private:
  JobConfig job_;
  ModelFactory factory_;
};

// The `siphon train` command for a program of one's own: parses `JOB.yaml [--set section.key=value
// ...]`, starts mpirun when started alone, trains with one process a worker. Returns the exit code;
// main() returns it.
int TrainerMain(int argc, char** argv, const ModelFactory& factory = nullptr);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_TRAINER_H_
