#include "launch/run/train_command.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/mpi_world.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/plan_job.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/process/exit_codes.h"
#include "launch/process/supervise.h"
#include "launch/run/job_limits.h"
#include "launch/run/prepare_job.h"
#include "launch/run/rank.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::StatusOr<PreparedJob> Prepare(const TrainArguments& arguments, const ModelFactory& factory) {
  SIPHON_ASSIGN_OR_RETURN(
      const JobConfig job,
      LoadJobConfig(arguments.job, arguments.overrides,
                    MachineLimits(factory ? ModelSource::kProgram : ModelSource::kJobFile)));
  SIPHON_ASSIGN_OR_RETURN(PreparedJob prepared, PrepareJob(job, factory));
  const int workers = static_cast<int>(prepared.plan.training.programs.size());
  if (StartedUnderMpi() && AnnouncedSize() >= 0 && AnnouncedSize() != workers) {
    return ConfigError(
        job, "pipeline.stages",
        absl::StrCat("the job has ", workers, " workers and was started with ", AnnouncedSize(),
                     " processes; start it with mpirun -np ", workers, ", or without mpirun"));
  }
  return prepared;
}

// The command line that each rank runs: this program with these arguments.
std::vector<std::string> RankCommand(int argc, char** argv) {
  std::vector<std::string> command(argv, argv + argc);
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length > 0) command[0].assign(self, length);
  return command;
}

// What continues this job from its newest checkpoint.
std::string ResumeCommand(const TrainArguments& arguments) {
  std::string command = absl::StrCat("siphon train ", arguments.job);
  for (const std::string& value : arguments.overrides) absl::StrAppend(&command, " --set ", value);
  return absl::StrCat(command, " --set checkpoint.resume=auto");
}

}  // namespace

int TrainCommand(int* argc, char*** argv, const TrainArguments& arguments,
                 const ModelFactory& factory) {
  const auto prepared = Prepare(arguments, factory);
  if (!prepared.ok()) {
    // Every rank finds the same; one of them says so.
    if (!StartedUnderMpi() || AnnouncedRank() <= 0) {
      std::fprintf(stderr, "siphon: %s\n", std::string(prepared.status().message()).c_str());
    }
    return ExitCodeOf(prepared.status());
  }
  if (StartedUnderMpi()) return RunRank(argc, argv, *prepared, arguments.format);

  StartLog("siphon", prepared->job.output.log_level);
  const auto rings = LayOutRings(PlanRings(prepared->plan, prepared->model.spec));
  const int workers = static_cast<int>(prepared->plan.training.programs.size());
  return Supervise({.workers = workers,
                    .command = RankCommand(*argc, *argv),
                    .mpirun_options = prepared->job.launch.mpirun_options,
                    .heartbeat_timeout = prepared->job.launch.heartbeat_timeout,
                    .window_bytes = SharedWindowFileBytes(rings.region_bytes, workers),
                    .resume_command = ResumeCommand(arguments)});
}

}  // namespace siphon
