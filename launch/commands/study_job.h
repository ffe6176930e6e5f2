#ifndef SIPHON_LAUNCH_COMMANDS_STUDY_JOB_H_
#define SIPHON_LAUNCH_COMMANDS_STUDY_JOB_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launch/commands/command.h"
#include "launch/config/job_config.h"
#include "planner/model_spec.h"
#include "planner/topology.h"
#include "planner/training_plan.h"

namespace siphon {

// A job with all that is decided for it, for commands that look at jobs and run none.
struct StudiedJob {
  JobConfig job;
  ModelSpec model;
  std::string schedule_csv;          // as ReadScheduleFile gives it
  TrainingPlan plan;                 // without evaluation
  std::optional<Topology> topology;  // if the job names one
};

// Loads and plans a job, whatever this machine lacks: every published value is taken. Data is read
// only where nothing else tells how many ids the model needs. Errors: InvalidArgument and NotFound
// with the key's place in the job file.
absl::StatusOr<StudiedJob> StudyJob(const JobArguments& arguments);

// Whether `siphon train` takes the job file, on some machine.
bool CanTrain(const JobArguments& arguments);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_STUDY_JOB_H_
