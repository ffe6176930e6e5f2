#include "launch/commands/plan_study.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/study_job.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/fitting_step.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/plan_costs.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/predict_step.h"
#include "launch/profile/worker_problem.h"
#include "launch/topology/job_topology.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"
#include "planner/strategies/harmony_search.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

constexpr absl::string_view kDefaultStrategy = "auto";
constexpr absl::string_view kStrategyKey = "memory.strategy";
// It alone needs links between workers.
constexpr absl::string_view kLendingStrategy = "d2d_swap";
// It alone needs a drive.
constexpr absl::string_view kDriveStrategy = "nvme_swap";

class Stopwatch {
 public:
  Nanos Elapsed() const {
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string StrategyName(const PlanRequest& request, const JobConfig& job) {
  if (!request.strategy.empty()) return request.strategy;
  const bool named = job.origins.contains(std::string(kStrategyKey));
  return named ? job.memory.strategy : std::string(kDefaultStrategy);
}

absl::StatusOr<MemoryStrategy> StrategyOf(const PlanRequest& request, const JobConfig& job) {
  auto strategy = FindMemoryStrategy(StrategyName(request, job));
  if (strategy.ok()) return strategy;
  const std::string message = absl::StrCat(strategy.status().message(), ", ", kHarmonyStrategy);
  if (!request.strategy.empty()) return absl::NotFoundError(message);
  return ConfigError(job, kStrategyKey, message);
}

// Where the job has no topology, workers are devices as far as something hangs on it: a strategy
// that lends, a host that can be full, or a drive.
WorkerMachine WorkersOf(const JobConfig& job, absl::string_view strategy) {
  const bool devices = strategy == kLendingStrategy || strategy == kDriveStrategy ||
                       job.memory.host_capacity > Bytes(0) || !job.memory.nvme_directory.empty();
  return devices ? WorkerMachine::kDevices : WorkerMachine::kProcesses;
}

absl::Status CheckLinks(const JobConfig& job, absl::string_view strategy,
                        const StudiedJob& studied) {
  if (strategy != kLendingStrategy || studied.topology.has_value() ||
      job.pipeline.backend == "cpu") {
    return absl::OkStatus();
  }
  return ConfigError(job, "topology.name",
                     absl::StrCat("is missing; ", strategy,
                                  " needs to know the links between devices: write a preset "
                                  "(siphon topology lists them) or a file"));
}

absl::StatusOr<SimulatedStep> KeptStep(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
  SimulationInput input = SimulationOf(problem, problem.mapping.value_or(IdentityMapping(workers)),
                                       MemoryPlan(), problem.schedule);
  input.capacity.clear();
  return Simulate(input);
}

// Takes what `strategy` says of the problem.
absl::Status TakePlan(absl::StatusOr<PlannedStep> planned, StudiedPlan& studied) {
  const PlanningProblem& problem = studied.problem;
  if (absl::IsResourceExhausted(planned.status())) {
    studied.misfit = std::string(planned.status().message());
    const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
    studied.plan = WithSimulationInput(
        std::move(studied.plan),
        SimulationOf(problem, IdentityMapping(workers), MemoryPlan(), problem.schedule));
    return absl::OkStatus();
  }
  SIPHON_RETURN_IF_ERROR(planned.status());
  studied.plan = WithSimulationInput(
      std::move(studied.plan),
      SimulationOf(problem, planned->mapping, planned->memory, planned->schedule));
  studied.plan.strategy = studied.strategy;
  studied.plan.predicted = PredictionOf(planned->simulated, studied.bound.step_time);
  studied.step = std::move(planned->simulated);
  studied.map = planned->map;
  return absl::OkStatus();
}

StudiedPlan StudiedOf(const StudiedJob& job, absl::string_view strategy, JobProblem made) {
  return {.job = job.job,
          .strategy = std::string(strategy),
          .parameters = ParameterCount(job.model),
          .tokens = job.plan.global_batch * ElementCount(job.model.target),
          .problem = std::move(made.problem),
          .plan = std::move(made.plan)};
}

// The job as a problem, with its bound and the step that keeps everything, but no plan yet.
absl::StatusOr<StudiedPlan> ProblemToPlan(const PlanRequest& request, const StudiedJob& job,
                                          absl::string_view strategy) {
  SIPHON_RETURN_IF_ERROR(CheckLinks(job.job, strategy, job));
  const Topology* const topology = job.topology.has_value() ? &*job.topology : nullptr;
  SIPHON_ASSIGN_OR_RETURN(const PlanCosts costs,
                          LoadPlanCosts(job.job, topology, request.profile, request.device));
  const PlannedJob planned{job.job, job.model, job.plan, job.schedule_csv};
  SIPHON_ASSIGN_OR_RETURN(
      JobProblem made,
      ProblemOfJob(planned, {.costs = costs.source(),
                             .topology = topology,
                             .workers = WorkersOf(job.job, strategy),
                             .needs_drive = topology == nullptr && strategy == kDriveStrategy}));
  StudiedPlan studied = StudiedOf(job, strategy, std::move(made));
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(studied.problem));
  return studied;
}

absl::Status AddBounds(StudiedPlan& studied) {
  SIPHON_ASSIGN_OR_RETURN(studied.kept, KeptStep(studied.problem));
  SIPHON_ASSIGN_OR_RETURN(studied.bound, LowerBoundOf(studied.problem));
  return absl::OkStatus();
}

// Whether `siphon train` plans the job too, for workers of this kind: on CPUs, whose links are
// their machine's, or held to the topology's rates.
bool IsForWorkers(const PlanRequest& request, const StudiedJob& job, absl::string_view strategy) {
  const bool other_links = job.topology.has_value() && job.job.topology.throttle == "none";
  if (job.job.pipeline.backend != "cpu" || !request.device.empty() || other_links) return false;
  return strategy != "keep" && job.plan.training.replicas == 1 &&
         CanTrain(WithSettings(request, {absl::StrCat(kStrategyKey, "=", strategy)}).job);
}

// As `siphon train` does, so that it can follow the plan. `file`: the plan that is followed; null:
// what the strategy finds.
absl::StatusOr<StudiedPlan> StudyWorkers(const PlanRequest& request, const StudiedJob& job,
                                         const std::string& strategy, const PlanInFile* file) {
  SIPHON_ASSIGN_OR_RETURN(const PlanCosts costs,
                          LoadPlanCosts(job.job, nullptr, request.profile, request.device));
  SIPHON_ASSIGN_OR_RETURN(const std::optional<Topology> throttled, LoadThrottledTopology(job.job));
  const WorkersOfJob workers{.planned = {job.job, job.model, job.plan, job.schedule_csv},
                             .costs = costs.source(),
                             .throttled = throttled.has_value() ? &*throttled : nullptr};
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfWorkers(workers, strategy));
  StudiedPlan studied = StudiedOf(job, strategy, std::move(made));
  SIPHON_RETURN_IF_ERROR(AddBounds(studied));
  absl::StatusOr<FittingStep> found =
      file != nullptr ? FittingStepInFile(workers, *file) : PlanFittingStep(workers, strategy);
  if (!found.ok()) {
    SIPHON_RETURN_IF_ERROR(TakePlan(found.status(), studied));
    return studied;
  }
  studied.problem = std::move(found->live.problem);
  SIPHON_RETURN_IF_ERROR(TakePlan(std::move(found->live.step), studied));
  return studied;
}

// The job with the stages and the schedule of the choice.
std::vector<std::string> SettingsOf(const HarmonyChoice& choice) {
  const ScheduleOptions& options = choice.shape.options;
  const std::string layers =
      absl::StrJoin(choice.partition.stages, ",", [](std::string* text, const StageRange& stage) {
        absl::StrAppend(text, stage.end - stage.begin);
      });
  return {"pipeline.schedule=harmony_pp",
          absl::StrCat("pipeline.stages=", choice.partition.stages.size()),
          absl::StrCat("pipeline.chunks=", choice.shape.chunks),
          absl::StrCat("pipeline.partition=[", layers, "]"),
          absl::StrCat("pipeline.forward_pack=", options.forward_pack),
          absl::StrCat("pipeline.backward_pack=", options.backward_pack),
          absl::StrCat("pipeline.microbatch_group=", options.microbatch_group),
          "train.clip_norm=0"};
}

// Plans the job anew with the stages and the schedule that the search finds best.
absl::StatusOr<StudiedPlan> StudyHarmony(const PlanRequest& request, const StudiedJob& job) {
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan asked, ProblemToPlan(request, job, kHarmonyStrategy));
  const absl::StatusOr<HarmonyPlan> found =
      SearchHarmony(asked.problem, {.build_schedule = BuildSchedule});
  if (!found.ok()) {
    SIPHON_RETURN_IF_ERROR(AddBounds(asked));
    SIPHON_RETURN_IF_ERROR(TakePlan(found.status(), asked));
    return asked;
  }
  const std::vector<std::string> settings = SettingsOf(found->choice);
  const PlanRequest changed = WithSettings(request, settings);
  SIPHON_ASSIGN_OR_RETURN(const StudiedJob changed_job, StudyJob(changed.job));
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied,
                          ProblemToPlan(changed, changed_job, kHarmonyStrategy));
  studied.settings = settings;
  SIPHON_RETURN_IF_ERROR(AddBounds(studied));
  SIPHON_RETURN_IF_ERROR(TakePlan(PlanHarmony(studied.problem, found->choice), studied));
  return studied;
}

// What memory.plan says of the job.
absl::StatusOr<StudiedPlan> StudyPlanFile(const PlanRequest& request, const StudiedJob& job) {
  SIPHON_ASSIGN_OR_RETURN(const PlanInFile file, LoadPlanInFile(job.job));
  SIPHON_RETURN_IF_ERROR(CheckPlanOfJob(file, {job.job, job.model, job.plan, job.schedule_csv}));
  if (!file.plan.memory.stages.empty() && IsForWorkers(request, job, file.plan.strategy)) {
    return StudyWorkers(request, job, file.plan.strategy, &file);
  }
  const bool drives = ParksOnDrives(file.plan.memory);
  const bool devices = !file.plan.topology.devices.empty();
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, ProblemToPlan(request, job,
                                                             drives    ? kDriveStrategy
                                                             : devices ? kLendingStrategy
                                                                       : kDefaultStrategy));
  studied.strategy = file.plan.strategy;
  SIPHON_RETURN_IF_ERROR(AddBounds(studied));
  SIPHON_RETURN_IF_ERROR(
      TakePlan(StepInFile(file, studied.problem, studied.problem.profile), studied));
  return studied;
}

}  // namespace

absl::StatusOr<StudiedPlan> StudyPlan(const PlanRequest& request) {
  SIPHON_ASSIGN_OR_RETURN(const StudiedJob job, StudyJob(request.job));
  const Stopwatch watch;
  if (request.strategy.empty() && !job.job.memory.plan.empty()) {
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, StudyPlanFile(request, job));
    studied.planning_time = watch.Elapsed();
    return studied;
  }
  if (StrategyName(request, job.job) == kHarmonyStrategy) {
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, StudyHarmony(request, job));
    studied.planning_time = watch.Elapsed();
    return studied;
  }
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy strategy, StrategyOf(request, job.job));
  if (IsForWorkers(request, job, strategy.name) &&
      absl::IsResourceExhausted(CheckFits({job.job, job.model, job.plan, job.schedule_csv}))) {
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied,
                            StudyWorkers(request, job, std::string(strategy.name), nullptr));
    studied.planning_time = watch.Elapsed();
    return studied;
  }
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, ProblemToPlan(request, job, strategy.name));
  SIPHON_RETURN_IF_ERROR(AddBounds(studied));
  SIPHON_RETURN_IF_ERROR(TakePlan(strategy.plan(studied.problem), studied));
  studied.planning_time = watch.Elapsed();
  return studied;
}

PlanRequest WithSettings(PlanRequest request, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    // --strategy would win over a setting.
    if (setting.starts_with(absl::StrCat(kStrategyKey, "="))) request.strategy.clear();
    request.job.overrides.push_back(setting);
  }
  return request;
}

Bytes PeakOf(const SimulatedStep& step, size_t worker) { return Total(step.peak[worker]); }

Bytes CapacityOf(const StudiedPlan& studied, size_t worker) {
  const std::vector<Bytes>& capacity = studied.problem.capacity;
  return capacity.empty() ? Bytes(0) : capacity[worker % capacity.size()];
}

}  // namespace siphon
