#include "launch/run/job/fit_memory.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launch/plan_job/job_memory.h"
#include "launch/process/core_count.h"
#include "launch/process/inject_fault.h"
#include "launch/process/rank_process.h"
#include "launch/process/run_together.h"
#include "launch/profile/fitting_step.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/predict_step.h"
#include "launch/profile/worker_problem.h"
#include "launch/run/job/run_machine.h"
#include "launch/topology/job_topology.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status TakePlan(FittingStep found, const std::string& strategy, PreparedJob& prepared) {
  SIPHON_ASSIGN_OR_RETURN(prepared.plan_text, TextOf(found, strategy, prepared.plan));
  prepared.whole = prepared.plan;
  auto& [problem, step, parking, host_steps] = found.live;
  prepared.plan.evaluation = prepared.plan_text.evaluation;
  prepared.plan.memory = std::move(step.memory);
  prepared.plan.training = std::move(step.schedule);
  const auto takes = [](Bytes bytes) { return bytes > Bytes(0); };
  if (absl::c_any_of(host_steps, takes)) prepared.host_steps = std::move(host_steps);
  if (ParksAnything(parking) || !prepared.host_steps.empty()) {
    prepared.parking = std::move(parking);
    prepared.second = SecondLendingOf(prepared.plan_text, prepared.parking);
  }
  return absl::OkStatus();
}

// Where nothing says what servers there are: a device a worker.
Topology BareServers(const JobConfig& job, int workers) {
  const auto servers = static_cast<int>(job.topology.servers);
  Topology server;
  server.devices.resize(static_cast<size_t>((workers + servers - 1) / servers));
  return SeveralServers(server, servers, {job.topology.network_rate, job.topology.network_latency});
}

// As many workers on each server, in order: where nothing is parked, any device is as good.
DeviceMapping SpreadOverServers(const Topology& topology, int workers) {
  const int servers = ServerCount(topology);
  const int of_server = (workers + servers - 1) / servers;
  DeviceMapping mapping;
  for (int worker = 0; worker < workers; ++worker) {
    const int first = worker / of_server * (DeviceCount(topology) / servers);
    mapping.device_of_worker.emplace_back(first + worker % of_server);
  }
  return mapping;
}

// Where nothing has to move, messages do all the same; and devices of several servers have numbers
// in each.
absl::Status TakeTopology(PreparedJob& prepared) {
  PlanText& plan = prepared.plan_text;
  const JobConfig& job = prepared.job;
  const auto workers = static_cast<int>(plan.workers.size());
  std::optional<Topology> topology = prepared.throttled;
  if (job.pipeline.backend == "cuda" && job.topology.servers > 1) {
    SIPHON_ASSIGN_OR_RETURN(topology, LoadJobTopology(job));
    if (!topology.has_value()) topology = BareServers(job, workers);
  }
  if (!topology.has_value()) return absl::OkStatus();
  SIPHON_RETURN_IF_ERROR(CheckDevicesOf(*topology, job, workers));
  plan.topology = *std::move(topology);
  plan.topology.name = NameForPlan(plan.topology.name);
  plan.topology.device_kind = NameForPlan(plan.topology.device_kind);
  plan.mapping = SpreadOverServers(plan.topology, workers);
  return absl::OkStatus();
}

// The place of the first worker that may hold less in the job than its plan says; else of the file.
std::string TighterWorker(const PlannedJob& planned, const PlanInFile& file) {
  for (size_t worker = 0; worker < file.plan.workers.size(); ++worker) {
    const Bytes by_plan = file.plan.workers[worker].capacity;
    const Bytes by_job =
        WorkerCapacity(planned.job, WorkerId(static_cast<int>(worker))).value_or(Bytes(0));
    if (by_job == Bytes(0) || (by_plan > Bytes(0) && by_plan <= by_job)) continue;
    const std::string may_hold =
        by_plan == Bytes(0) ? std::string("anything") : FormatBytes(by_plan);
    return absl::StrCat(PlaceInPlan(file, absl::StrCat("worker ", worker), "capacity"), ": worker ",
                        worker, " may hold ", may_hold, " by the plan, and ", FormatBytes(by_job),
                        " by the job");
  }
  return file.path;
}

// The plan that the job follows, whatever else would fit: its own, or its parent's, so that ranks
// do not search for what has been found. None: it has to be planned.
absl::StatusOr<std::optional<PlanInFile>> PlanToFollow(const JobConfig& job) {
  if (!job.memory.plan.empty()) return LoadPlanInFile(job);
  const std::string parents = SupervisedPlanPath();
  if (parents.empty()) return std::nullopt;
  return LoadPlanAt(parents);
}

// What another process has found for this job. None: it has to be searched for here.
absl::StatusOr<std::optional<PlanInFile>> PlanOfOthers(const JobConfig& job,
                                                       const PlanSearch& search) {
  if (!search.ask_others) return std::nullopt;
  SIPHON_ASSIGN_OR_RETURN(std::string text, search.ask_others(job));
  if (text.empty()) return std::nullopt;
  return PlanInText("the plan of another rank", std::move(text));
}

// What an earlier run has found for such a job. None: none is known.
std::optional<PlanInFile> PlanOfEarlierRun(const JobConfig& job, const PlanSearch& search) {
  if (!search.ask_earlier) return std::nullopt;
  std::string text = search.ask_earlier(job);
  if (text.empty()) return std::nullopt;
  auto plan = PlanInText("the plan of an earlier run", std::move(text));
  return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
}

bool KeepsEverything(const MemoryPlan& memory) {
  return absl::c_all_of(memory.stages, [](const StagePlan& stage) {
    return stage.update == UpdatePlace::kDevice &&
           absl::c_all_of(stage.groups, [](const PlannedGroup& group) {
             return group.choice.placement == Placement::kKeep;
           });
  });
}

absl::Status FollowPlan(const PlannedJob& planned, const absl::Status& kept, const PlanInFile& file,
                        PreparedJob& prepared) {
  SIPHON_RETURN_IF_ERROR(CheckPlanOfJob(file, planned));
  if (file.plan.memory.stages.empty() || (!kept.ok() && KeepsEverything(file.plan.memory))) {
    if (kept.ok()) SIPHON_RETURN_IF_ERROR(TakeTopology(prepared));
    return Annotate(kept, absl::StrCat(file.path, " keeps everything"));
  }
  SIPHON_ASSIGN_OR_RETURN(const RunMachine machine, MachineOf(prepared));
  absl::StatusOr<FittingStep> found =
      FittingStepInFile(WorkersOn(machine, planned, prepared), file);
  if (absl::IsResourceExhausted(found.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        TighterWorker(planned, file), ": the plan does not fit: ", SentenceOf(found.status()),
        "\n  without memory.plan the job is planned with the room "
        "that workers take"));
  }
  SIPHON_RETURN_IF_ERROR(found.status());
  return TakePlan(*std::move(found), file.plan.strategy, prepared);
}

// What is said beside the changes of the job that fit, where one of the strategies does
// that was not tried.
std::string StrategyThatFits(WorkersOfJob workers, absl::string_view tried) {
  workers.goal = PlanningGoal::kAnyThatFits;
  for (const std::string strategy : {"recompute", "auto"}) {
    if (strategy == tried || !PlanFittingStep(workers, strategy).ok()) continue;
    return absl::StrCat("\n  or --set memory.strategy=", strategy,
                        strategy == kRecomputeStrategy
                            ? ": activations are dropped and computed again"
                            : ": tensors are parked elsewhere, or computed again");
  }
  return "";
}

// The server that `siphon plan` plans for may have room that workers do not have.
std::string UnusedTopology(const JobConfig& job) {
  const bool unused = job.pipeline.backend == "cpu" && !job.topology.name.empty() &&
                      job.topology.throttle == "none";
  if (!unused) return "";
  return absl::StrCat("\n  ", job.topology.name,
                      " is not used: CPU workers are on its devices with topology.throttle only");
}

}  // namespace

bool ParksAnything(const std::vector<WorkerParking>& parking) {
  return absl::c_any_of(parking, [](const WorkerParking& worker) { return !worker.bytes.empty(); });
}

absl::Status FitMemory(const std::string& schedule_csv, const PlanSearch& search,
                       PreparedJob& prepared) {
  const PlannedJob planned{prepared.job, prepared.model.spec, prepared.plan, schedule_csv};
  if (prepared.throttled.has_value()) {
    SIPHON_RETURN_IF_ERROR(
        CheckDevicesOf(*prepared.throttled, prepared.job, WorkerCount(prepared.plan.training)));
  }
  const absl::Status kept = CheckFits(planned);
  if (absl::IsResourceExhausted(kept)) {
    SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate,
                            EstimateJob(planned, Accounting::kRuntime));
    prepared.kept_whole = FindMisfit(prepared.job, estimate);
  }
  SIPHON_ASSIGN_OR_RETURN(const std::optional<PlanInFile> file, PlanToFollow(prepared.job));
  if (file.has_value()) return FollowPlan(planned, kept, *file, prepared);
  if (kept.ok()) SIPHON_RETURN_IF_ERROR(TakeTopology(prepared));
  if (!absl::IsResourceExhausted(kept)) return kept;
  const std::string& strategy = prepared.job.memory.strategy;
  if (strategy == "keep" && OverlooksCapacity()) return absl::OkStatus();
  if (strategy != "keep") {
    SIPHON_ASSIGN_OR_RETURN(const std::optional<PlanInFile> found,
                            PlanOfOthers(prepared.job, search));
    if (found.has_value()) return FollowPlan(planned, kept, *found, prepared);
    const std::optional<PlanInFile> earlier = PlanOfEarlierRun(prepared.job, search);
    prepared.was_planned_before =
        earlier.has_value() && FollowPlan(planned, kept, *earlier, prepared).ok();
    if (prepared.was_planned_before) return absl::OkStatus();
  }
  const absl::StatusOr<RunMachine> machine = MachineOf(prepared);
  if (!machine.ok()) {
    if (strategy != "keep") return machine.status();
    return absl::ResourceExhaustedError(absl::StrCat(
        kept.message(), "\n  other strategies were not tried: ", machine.status().message()));
  }
  WorkersOfJob workers = WorkersOn(*machine, planned, prepared);
  workers.news = search.news;
  workers.side_by_side = {RunTogether, CoreCount()};
  workers.most_effort = kEffortForUsers;
  if (strategy == "keep") {
    return absl::ResourceExhaustedError(
        absl::StrCat(kept.message(), StrategyThatFits(workers, strategy)));
  }
  absl::StatusOr<FittingStep> found = PlanFittingStep(workers, strategy);
  if (absl::IsResourceExhausted(found.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kept.message(), "\n  ",
                     strategy == kRecomputeStrategy ? std::string("computing activations again")
                                                    : absl::StrCat("memory.strategy ", strategy),
                     " is not enough: ", SentenceOf(found.status()), UnusedTopology(prepared.job),
                     StrategyThatFits(workers, strategy)));
  }
  SIPHON_RETURN_IF_ERROR(found.status());
  prepared.was_searched = true;
  // As all have it who are told, workers and later runs.
  SIPHON_ASSIGN_OR_RETURN(const PlanText text, TextOf(*found, strategy, prepared.plan));
  SIPHON_ASSIGN_OR_RETURN(const PlanInFile told,
                          PlanInText("the plan that was found", ToString(text)));
  return FollowPlan(planned, kept, told, prepared);
}

}  // namespace siphon
