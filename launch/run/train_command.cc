#include "launch/run/train_command.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/checkpoint/checkpoint_directory.h"
#include "launch/checkpoint/file_operations.h"
#include "launch/commands/known_plans.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"
#include "launch/commands/planning_progress.h"
#include "launch/config/load_job_config.h"
#include "launch/config/read_schedule_file.h"
#include "launch/mpi_world.h"
#include "launch/output/cache_directory.h"
#include "launch/output/start_log.h"
#include "launch/plan_job/plan_job.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/process/exit_codes.h"
#include "launch/process/inject_fault.h"
#include "launch/process/machine_memory.h"
#include "launch/process/rank_process.h"
#include "launch/process/supervise.h"
#include "launch/run/check_places.h"
#include "launch/run/hold_places.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/job/shared_plan.h"
#include "launch/run/job_limits.h"
#include "launch/run/parking/locked_memory.h"
#include "launch/run/parking/parking_room.h"
#include "launch/run/place_workers.h"
#include "launch/run/rank.h"
#include "launch/run/seat/phases.h"
#include "launch/run/seat/training_state.h"
#include "launch/topology/probe/probed_job.h"
#include "planner/status.h"

namespace siphon {
namespace {

// As a shell takes it for one word.
std::string Quoted(const std::string& word) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-./=:,+@%", c);
  };
  if (!word.empty() && absl::c_all_of(word, plain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// What continues this job from its newest checkpoint.
std::string ResumeCommand(const std::string& program, const TrainArguments& arguments,
                          const ModelFactory& factory) {
  std::string command =
      absl::StrCat(Quoted(program), factory ? " " : " train ", Quoted(arguments.job));
  for (const std::string& value : arguments.overrides) {
    if (absl::StartsWith(value, "checkpoint.resume=")) continue;
    absl::StrAppend(&command, " --set ", Quoted(value));
  }
  if (arguments.share_gpu) absl::StrAppend(&command, " --share_gpu");
  return absl::StrCat(command, " --set checkpoint.resume=auto");
}

// For workers on devices, which may have what is there where the job does not say.
absl::StatusOr<PreparedJob> PrepareOnDevices(JobConfig job, const CudaMachine& machine,
                                             DeviceUse use, const ModelFactory& factory,
                                             const PlanSearch& search) {
  const bool takes_all = job.memory.capacity.empty();
  SIPHON_ASSIGN_OR_RETURN(const std::string schedule_csv, ReadScheduleFile(job));
  SIPHON_ASSIGN_OR_RETURN(const int workers, WorkersOf(job, schedule_csv));
  if (takes_all) job.memory.capacity = {CudaCapacity(machine, workers, use)};
  absl::StatusOr<PreparedJob> prepared = PrepareJob(job, factory, search);
  if (takes_all && absl::IsResourceExhausted(prepared.status())) {
    return WithDevicesMemory(prepared.status(), machine, workers, use);
  }
  SIPHON_RETURN_IF_ERROR(prepared.status());
  SIPHON_RETURN_IF_ERROR(CheckOnCuda(*prepared, static_cast<int>(machine.memory.size()), use));
  SIPHON_RETURN_IF_ERROR(CheckDeviceMemory(*prepared, machine, use));
  SIPHON_RETURN_IF_ERROR(CheckLockedMemory(*prepared, MachineMemory()));
  if (takes_all) {
    prepared->decided = {absl::StrCat("memory.capacity=", job.memory.capacity[0].value, "B")};
  }
  return prepared;
}

// Every worker reads the job's file again.
absl::Status CheckCanBeReadAgain(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status file = std::filesystem::status(path, error);
  // What is open in this process alone; a file that is not there its reader names.
  const bool is_own = absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/");
  const bool is_file = std::filesystem::is_regular_file(file) ||
                       std::filesystem::is_directory(file) || !std::filesystem::exists(file);
  if (is_file && !is_own) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is nothing that workers can read as well; write the job to a file"));
}

// A process a worker, where a launcher has started them.
absl::Status CheckWorldSize(const JobConfig& job) {
  if (!StartedUnderMpi() || AnnouncedSize() < 0) return absl::OkStatus();
  SIPHON_ASSIGN_OR_RETURN(const std::string schedule_csv, ReadScheduleFile(job));
  SIPHON_ASSIGN_OR_RETURN(const int workers, WorkersOf(job, schedule_csv));
  if (AnnouncedSize() == workers) return absl::OkStatus();
  return ConfigError(
      job, "pipeline.stages",
      absl::StrCat("the job has ", workers, " workers and was started with ", AnnouncedSize(),
                   " processes; start it with mpirun -np ", workers, ", or without mpirun"));
}

absl::StatusOr<PreparedJob> Prepare(const std::string& program, const TrainArguments& arguments,
                                    const ModelFactory& factory, const JobDevices& devices,
                                    const PlanSearch& search) {
  SIPHON_RETURN_IF_ERROR(CheckCanBeReadAgain(arguments.job));
  ConfigLimits limits = MachineLimits(factory ? ModelSource::kProgram : ModelSource::kJobFile);
  limits.known.why_no_cuda = devices.why_none;
  SIPHON_ASSIGN_OR_RETURN(JobConfig job, LoadJobConfig(arguments.job, arguments.overrides, limits));
  // What can be known before a plan is searched for.
  SIPHON_RETURN_IF_ERROR(CheckPlaces(job));
  SIPHON_RETURN_IF_ERROR(CheckWorldSize(job));
  std::string start;
  if (!Supervised()) {  // else the parent has asked
    SIPHON_ASSIGN_OR_RETURN(start, FindStart(job));
  }
  // What the parent of a job decides, it tells its ranks.
  const bool asks_for_devices = job.pipeline.backend == "cuda" && !Supervised();
  const DeviceUse use = arguments.share_gpu ? DeviceUse::kShared : DeviceUse::kOneEach;
  std::vector<std::string> decided;
  if (job.topology.source == "probe") {
    // Ranks of a user's own mpirun would measure all at once.
    SIPHON_ASSIGN_OR_RETURN(
        job, WithProbedTopology(
                 job, StartedUnderMpi() ? UnknownServer::kRefuse : UnknownServer::kMeasure,
                 devices.probe));
    decided.push_back("topology.source=file");
    decided.push_back("topology.name=" + job.topology.name);
  }
  SIPHON_ASSIGN_OR_RETURN(PreparedJob prepared,
                          asks_for_devices
                              ? PrepareOnDevices(job, devices.machine(), use, factory, search)
                              : PrepareJob(job, factory, search));
  prepared.decided.insert(prepared.decided.end(), decided.begin(), decided.end());
  prepared.share_gpu = arguments.share_gpu;
  prepared.start = std::move(start);
  if (!Supervised()) SIPHON_RETURN_IF_ERROR(CheckDriveRoom(prepared));
  SIPHON_RETURN_IF_ERROR(
      CheckInjectedFault({.schedule = prepared.plan.training, .phases = RunPhases()}));
  prepared.program = program;
  prepared.resume_command = ResumeCommand(program, arguments, factory);
  return prepared;
}

// Shows what is being planned for how long.
absl::StatusOr<PreparedJob> PrepareWithProgress(const std::string& program,
                                                const TrainArguments& arguments,
                                                const ModelFactory& factory,
                                                const JobDevices& devices, PlanSearch search) {
  PlanningProgress progress;
  progress.Say("preparing the job");
  search.news = progress.News();
  return Prepare(program, arguments, factory, devices, search);
}

// Of a rank that waits for another one's plan nothing is shown: of its parent's, or, by `shared`,
// rank 0's.
absl::StatusOr<PreparedJob> PrepareAloud(const std::string& program,
                                         const TrainArguments& arguments,
                                         const ModelFactory& factory, const JobDevices& devices,
                                         SharedPlan& shared) {
  if (Supervised()) return Prepare(program, arguments, factory, devices, {});
  PlanSearch search;
  if (StartedUnderMpi()) {
    search.ask_others = [&](const JobConfig& job) {
      BecomeRank(job, arguments.share_gpu);
      return shared.Ask(job);
    };
  }
  if (AnnouncedRank() > 0) return Prepare(program, arguments, factory, devices, search);
  // A program's own model is nothing that is known by its name.
  const KnownPlans known(factory ? "" : CacheDirectory());
  search.ask_earlier = [&](const JobConfig& job) { return known.Find(job); };
  absl::StatusOr<PreparedJob> prepared =
      PrepareWithProgress(program, arguments, factory, devices, std::move(search));
  if (!prepared.ok()) return prepared;
  if (prepared->was_searched) known.Keep(prepared->job, PlanThatWasFound(*prepared));
  if (prepared->was_planned_before) {
    std::fputs(
        "planned as before; --set memory.known_plans=false "
        "searches anew\n",
        stderr);
  }
  return prepared;
}

// With more LibTorch threads than cores, threads that wait must sleep, or they take the time of
// those that work. libgomp reads this once, when a process is loaded; a value that the user set
// stays.
void LetWaitingThreadsSleep(int64_t workers, int64_t threads_per_worker) {
  if (workers * threads_per_worker > sysconf(_SC_NPROCESSORS_ONLN)) {
    setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  }
}

// The command line that each rank runs: this program with these arguments, under the name by which
// it was called, as that is what the closing words suggest to type.
std::vector<std::string> RankCommand(int argc, char** argv,
                                     const std::vector<std::string>& decided) {
  std::vector<std::string> command(argv, argv + argc);
  for (const std::string& value : decided) {
    command.push_back("--set");
    command.push_back(value);
  }
  if (absl::StrContains(command[0], '/')) return command;
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length > 0) command[0].assign(self, length);
  return command;
}

// Whether the job fits as this program plans it before it starts workers.
bool Fits(const JobArguments& arguments) {
  const auto job =
      LoadJobConfig(arguments.job, arguments.overrides, MachineLimits(ModelSource::kJobFile));
  return job.ok() && PrepareJob(*job, nullptr).ok();
}

// A change with which the job would fit: planned with it, and prepared as this one was. Only of
// workers with a capacity of the job's own, for which something leaves or is computed again.
// `looked`: such a one, so that it could be found.
std::optional<PlanFix> SmallestChange(const JobArguments& arguments, bool& looked) {
  PlanningProgress progress;
  const auto say = [&](absl::string_view doing) { progress.Say(doing); };
  const PlanRequest request{.job = arguments,
                            .news = progress.News(),
                            .goal = PlanningGoal::kAnyThatFits,
                            .bounds = false};
  say("looking for a change that fits");
  const absl::StatusOr<StudiedPlan> misfit = StudyPlan(request);
  if (!misfit.ok() || misfit->job.pipeline.backend != "cpu") return std::nullopt;
  const MemoryConfig& memory = misfit->job.memory;
  const bool plans = memory.plan.empty() && memory.strategy != "keep";
  if (!plans || memory.capacity.empty() || Fits(arguments)) return std::nullopt;
  looked = true;
  return FindFix(request, *misfit, say, [&](const PlanFix& planned) {
    return Fits(WithSettings(request, planned.settings).job);
  });
}

// Returns the exit code.
int Refuse(const absl::Status& status, const TrainArguments& arguments,
           const ModelFactory& factory) {
  const bool is_one_of_many = StartedUnderMpi();
  const int rank = is_one_of_many ? AnnouncedRank() : 0;
  // What it refuses as well, it has said, and its end ends this one meanwhile. Who is lost says
  // nothing.
  if (!absl::IsUnavailable(status)) LetRankZeroReport(rank);
  const std::string who = rank > 0 ? absl::StrCat("rank ", rank, ": ") : "";
  std::fprintf(stderr, "siphon: %s%s\n", who.c_str(), std::string(status.message()).c_str());
  if (!absl::IsResourceExhausted(status)) return ExitCodeOf(status);
  if (is_one_of_many || factory) return kExitDoesNotFit;
  bool looked = false;
  if (const std::optional<PlanFix> change = SmallestChange(arguments, looked)) {
    std::fprintf(stderr, "  smallest change that fits: %s\n", FixText(*change).c_str());
  } else if (looked) {
    std::fprintf(stderr, "  no change was found with which the workers' plan fits\n");
  }
  return kExitDoesNotFit;
}

// Of rings, and of what lenders lend.
Bytes WindowBytes(const PreparedJob& prepared, int workers) {
  const TransportKind kind = TransportKindOf(prepared.job.pipeline);
  const auto rings = LayOutRings(RingsBeside(kind, prepared.plan, prepared.model.spec));
  Bytes bytes = SharedWindowFileBytes(rings.region_bytes, workers);
  const Bytes lent = ParkingRegionBytes(prepared);
  if (lent > Bytes(0)) bytes += SharedWindowFileBytes(lent, workers);
  return bytes;
}

}  // namespace

int TrainCommand(int* argc, char*** argv, const TrainArguments& arguments,
                 const ModelFactory& factory, const JobDevices& devices) {
  SharedPlan shared(argc, argv);
  const auto prepared = PrepareAloud((*argv)[0], arguments, factory, devices, shared);
  if (!prepared.ok()) return Refuse(prepared.status(), arguments, factory);
  if (StartedUnderMpi()) {
    return RunRank(shared, *prepared, arguments.format, devices.open);
  }

  if (const absl::Status one = CheckOneServer(prepared->job); !one.ok()) {
    return Refuse(one, arguments, factory);
  }
  const absl::StatusOr<HeldPlaces> held = HoldPlaces(prepared->job);
  if (!held.ok()) return Refuse(held.status(), arguments, factory);
  StartLog("siphon", prepared->job.output.log_level);
  const int workers = WorkerCount(prepared->plan.training);
  LetWaitingThreadsSleep(workers, prepared->job.pipeline.threads_per_worker);
  const int code = Supervise({.workers = workers,
                              .command = RankCommand(*argc, *argv, prepared->decided),
                              .plan = PlanThatWasFound(*prepared),
                              .mpirun_options = prepared->job.launch.mpirun_options,
                              .heartbeat_timeout = prepared->job.launch.heartbeat_timeout,
                              .window_bytes = WindowBytes(*prepared, workers),
                              .resume_command = prepared->resume_command,
                              .checkpoint = prepared->start});
  // A worker that was killed in the middle of a save left a part of a checkpoint.
  if (code != kExitDone) {
    CleanCheckpointDirectory(CheckpointDirectory(prepared->job), SystemFiles()).IgnoreError();
  }
  return code;
}

}  // namespace siphon
