#include "launch/commands/plan_study.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/commands/harmony_job.h"
#include "launch/commands/least_memory.h"
#include "launch/commands/plan_compare.h"
#include "launch/commands/plan_footing.h"
#include "launch/commands/study_job.h"
#include "launch/plan_job/job_memory.h"
#include "launch/plan_job/plan_job.h"
#include "launch/process/core_count.h"
#include "launch/process/run_together.h"
#include "launch/profile/fitting_step.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/predict_step.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/marked_grid.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"
#include "planner/strategies/harmony/harmony_search.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

constexpr absl::string_view kDefaultStrategy = "auto";
constexpr absl::string_view kStrategyKey = "memory.strategy";

// Several plans are studied at once, and one linear program is solved at a time.
std::mutex solver;

class Stopwatch {
 public:
  Nanos Elapsed() const {
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

absl::StatusOr<MemoryStrategy> StrategyOf(const PlanRequest& request, const JobConfig& job) {
  auto strategy = FindMemoryStrategy(StrategyOfRequest(request, job));
  if (strategy.ok()) return strategy;
  std::string message = absl::StrCat(strategy.status().message(), ", ", kHarmonyStrategy);
  if (const std::string name = StrategyOfRequest(request, job); IsBaseline(name)) {
    absl::StrAppend(&message, "; ", name, " is one of the systems that siphon plan --compare and ",
                    "--published figure8 show beside them (", BaselineNames(), ")");
  }
  if (!request.strategy.empty()) return absl::NotFoundError(message);
  return ConfigError(job, kStrategyKey, message);
}

absl::StatusOr<SimulatedStep> KeptStep(const PlanningProblem& problem) {
  const int workers = WorkerCount(problem.schedule) * problem.schedule.replicas;
  SimulationInput input = SimulationOf(problem, problem.mapping.value_or(IdentityMapping(workers)),
                                       MemoryPlan(), problem.schedule);
  input.capacity.clear();
  return Simulate(input);
}

// No step is shorter than the bound of all plans, so none of any map is.
std::optional<MapProof> WithBound(std::optional<MapProof> map, Nanos bound) {
  if (!map || map->score != MappingScore::kStepTime || map->missing > Bytes(0)) return map;
  map->least_time = std::max(map->least_time, std::min(bound, map->time));
  map->proven = map->proven || map->least_time == map->time;
  return map;
}

// Takes what `strategy` says of the problem.
absl::Status TakePlan(absl::StatusOr<PlannedStep> planned, StudiedPlan& studied) {
  const PlanningProblem& problem = studied.problem;
  if (absl::IsResourceExhausted(planned.status())) {
    studied.misfit = SentenceOf(planned.status());
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
  studied.map = WithBound(planned->map, studied.bound.step_time);
  return absl::OkStatus();
}

// Moves the same, whatever its workers may hold.
constexpr absl::string_view kPolicy = "vdnn";

// The plan with as much room on the host as it takes.
absl::StatusOr<PlannedStep> PlanWithRoomOnHost(const MemoryStrategy& strategy,
                                               PlanningProblem problem) {
  problem.topology.host_memory = Bytes(0);
  absl::StatusOr<PlannedStep> planned = strategy.plan(problem);
  if (planned.ok() || strategy.name != kPolicy) return planned;
  problem.capacity.clear();
  return strategy.plan(problem);
}

// Of a plan that is refused as it moves more to a host than that has: how much it has there. The
// status then shows a place in the programs, which searches do not. None where it would not fit
// with more either, and moves something else then.
std::optional<std::string> HostIsShort(const MemoryStrategy& strategy, const absl::Status& refused,
                                       const PlanningProblem& problem) {
  const Bytes has = problem.topology.host_memory;
  const bool is_of_host = absl::IsResourceExhausted(refused) && has > Bytes(0) &&
                          absl::StrContains(refused.message(), '\n') &&
                          absl::StrContains(SentenceOf(refused), "but the host");
  if (!is_of_host) return std::nullopt;
  const absl::StatusOr<PlannedStep> planned = PlanWithRoomOnHost(strategy, problem);
  if (!planned.ok()) return std::nullopt;
  absl::string_view host = "the host";
  Bytes needs;
  for (const HolderCurve& holder : planned->simulated.other_memory) {
    if (!absl::StartsWith(holder.name, "the host")) continue;
    for (const MemoryPoint& point : holder.curve) {
      if (Total(point.bytes) <= needs) continue;
      host = holder.name;
      needs = Total(point.bytes);
    }
  }
  if (needs <= has) return std::nullopt;
  return absl::StrCat(host, " needs ", FormatBytes(needs), " under ", strategy.name, ", it has ",
                      FormatBytes(has));
}

StudiedPlan StudiedOf(const StudiedJob& job, absl::string_view strategy, JobProblem made) {
  return {.job = job.job,
          .strategy = std::string(strategy),
          .parameters = ParameterCount(job.model),
          .tokens = job.plan.global_batch * ElementCount(job.model.target),
          .problem = std::move(made.problem),
          .plan = std::move(made.plan)};
}

// A job, and by what it is costed.
struct FootedJob {
  StudiedJob job;
  PlanFooting footing;
};

absl::StatusOr<FootedJob> LoadJob(const PlanRequest& request) {
  FootedJob footed;
  SIPHON_ASSIGN_OR_RETURN(footed.job, StudyJob(request.job));
  SIPHON_ASSIGN_OR_RETURN(
      footed.footing, LoadFooting(footed.job, request.profile, request.device, request.devices));
  return footed;
}

// The job as a problem, but no plan yet. `like`: the strategy that its workers are seen for.
absl::StatusOr<StudiedPlan> ProblemToPlan(const FootedJob& footed, absl::string_view strategy,
                                          absl::string_view like) {
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOn(footed.footing, footed.job, like));
  StudiedPlan studied = StudiedOf(footed.job, strategy, std::move(made));
  studied.device_memory = footed.footing.device_memory;
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(studied.problem));
  return studied;
}

// That a strategy which parks on a drive has one. Where the job names no topology, it always has.
absl::Status CheckDrive(const PlanRequest& request, const JobConfig& job,
                        absl::string_view strategy, const PlanningProblem& problem) {
  if (strategy != kDriveStrategy || !problem.topology.drives.empty()) return absl::OkStatus();
  const std::string lacks =
      absl::StrCat(strategy, " needs an NVMe drive, but topology ", job.topology.name,
                   " has none; write memory.nvme_directory, which is taken to be on one");
  if (request.strategy.empty()) return ConfigError(job, kStrategyKey, lacks);
  return absl::InvalidArgumentError(lacks);
}

// The step that keeps everything, and the bound. Workers that move nothing are processes, for which
// the former is simulated whatever the strategy. The latter only where it is asked for.
absl::Status AddBounds(const PlanRequest& request, const FootedJob& footed, StudiedPlan& studied) {
  const bool as_processes = footed.footing.for_workers && !footed.footing.topology.has_value();
  if (as_processes) {
    SIPHON_ASSIGN_OR_RETURN(const JobProblem kept,
                            ProblemOn(footed.footing, footed.job, kDefaultStrategy));
    SIPHON_ASSIGN_OR_RETURN(studied.kept, KeptStep(kept.problem));
  } else {
    SIPHON_ASSIGN_OR_RETURN(studied.kept, KeptStep(studied.problem));
  }
  if (!request.bounds) return absl::OkStatus();
  const std::lock_guard<std::mutex> alone(solver);
  SIPHON_ASSIGN_OR_RETURN(studied.bound,
                          BoundOn(footed.footing, footed.job, studied.strategy, studied.problem));
  return absl::OkStatus();
}

// Whether `siphon train` follows plans of the strategy.
bool IsForWorkers(const PlanRequest& request, const FootedJob& footed, absl::string_view strategy) {
  return footed.footing.for_workers && strategy != "keep" &&
         CheckTrainable(footed.job.job, footed.job.plan).ok() &&
         CanTrain(WithSettings(request, {absl::StrCat(kStrategyKey, "=", strategy)}).job);
}

// How far the search goes, who hears of it, and what it has of the machine; of WorkersOfJob as of
// PlanningProblem.
template <typename Search>
void SetSearch(const PlanRequest& request, Search& search) {
  search.goal = request.goal;
  if (request.quick) search.effort = kLeastEffort;
  search.most_effort = request.quick ? kLeastEffort : kEffortForUsers;
  search.news = request.news;
  search.side_by_side = {RunTogether, CoreCount()};
}

// As `siphon train` does, so that it can follow the plan. `file`: the plan that is followed; null:
// what the strategy finds.
absl::StatusOr<StudiedPlan> StudyWorkers(const PlanRequest& request, const FootedJob& footed,
                                         const std::string& strategy, const PlanInFile* file) {
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, ProblemToPlan(footed, strategy, strategy));
  SIPHON_RETURN_IF_ERROR(AddBounds(request, footed, studied));
  WorkersOfJob workers = footed.footing.WorkersOf(footed.job);
  SetSearch(request, workers);
  absl::StatusOr<FittingStep> found =
      file != nullptr ? FittingStepInFile(workers, *file) : PlanFittingStep(workers, strategy);
  if (!found.ok()) {
    SIPHON_RETURN_IF_ERROR(TakePlan(found.status(), studied));
    return studied;
  }
  studied.problem = std::move(found->live.problem);
  studied.problem.news = nullptr;
  SIPHON_RETURN_IF_ERROR(TakePlan(std::move(found->live.step), studied));
  // On devices train may have other capacities than the job says.
  studied.is_of_train = file == nullptr && studied.job.pipeline.backend == "cpu" &&
                        request.goal == PlanningGoal::kShortestStep && !request.quick &&
                        request.profile.empty() && request.device.empty() &&
                        strategy == studied.job.memory.strategy;
  return studied;
}

// Plans the job anew with the stages and the schedule that the search finds best. What layers take
// beside tensors depends on those: where the plan does not fit for that, once more by the facts of
// that job.
absl::StatusOr<StudiedPlan> StudyHarmony(const PlanRequest& request, const FootedJob& footed) {
  constexpr int kMostSearches = 3;
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan asked,
                          ProblemToPlan(footed, kHarmonyStrategy, kHarmonyStrategy));
  PlanningProblem problem = asked.problem;
  for (int search = 1;; ++search) {
    const absl::StatusOr<HarmonyPlan> found =
        SearchHarmony(problem, {.build_schedule = BuildSchedule});
    if (!found.ok()) {
      SIPHON_RETURN_IF_ERROR(AddBounds(request, footed, asked));
      SIPHON_RETURN_IF_ERROR(TakePlan(found.status(), asked));
      return asked;
    }
    const std::vector<std::string> settings = HarmonySettings(found->choice);
    SIPHON_ASSIGN_OR_RETURN(const FootedJob changed, LoadJob(WithSettings(request, settings)));
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied,
                            ProblemToPlan(changed, kHarmonyStrategy, kHarmonyStrategy));
    absl::StatusOr<PlannedStep> planned = PlanHarmony(studied.problem, found->choice);
    if (absl::IsResourceExhausted(planned.status()) && search < kMostSearches &&
        TakeFactsOf(studied.problem, problem)) {
      continue;
    }
    studied.settings = settings;
    SIPHON_RETURN_IF_ERROR(AddBounds(request, changed, studied));
    SIPHON_RETURN_IF_ERROR(TakePlan(std::move(planned), studied));
    return studied;
  }
}

// What memory.plan names.
absl::StatusOr<PlanInFile> LoadPlanOf(const StudiedJob& job) {
  SIPHON_ASSIGN_OR_RETURN(PlanInFile file, LoadPlanInFile(job.job));
  SIPHON_RETURN_IF_ERROR(CheckPlanOfJob(file, {job.job, job.model, job.plan, job.schedule_csv}));
  return file;
}

// What memory.plan says of the job.
absl::StatusOr<StudiedPlan> StudyPlanFile(const PlanRequest& request, const FootedJob& footed) {
  SIPHON_ASSIGN_OR_RETURN(const PlanInFile file, LoadPlanOf(footed.job));
  if (!file.plan.memory.stages.empty() && IsForWorkers(request, footed, file.plan.strategy)) {
    PlanRequest without_search = request;
    without_search.quick = false;
    return StudyWorkers(without_search, footed, file.plan.strategy, &file);
  }
  const bool drives = ParksOnDrives(file.plan.memory);
  const bool devices = !file.plan.topology.devices.empty();
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, ProblemToPlan(footed, file.plan.strategy,
                                                             drives    ? kDriveStrategy
                                                             : devices ? kLendingStrategy
                                                                       : kDefaultStrategy));
  SIPHON_RETURN_IF_ERROR(AddBounds(request, footed, studied));
  SIPHON_RETURN_IF_ERROR(
      TakePlan(StepInFile(file, studied.problem, studied.problem.profile), studied));
  return studied;
}

absl::StatusOr<StudiedPlan> StudyStrategy(const PlanRequest& request, const FootedJob& footed) {
  const StudiedJob& job = footed.job;
  if (FollowsFile(request, job.job)) return StudyPlanFile(request, footed);
  if (StrategyOfRequest(request, job.job) == kHarmonyStrategy) return StudyHarmony(request, footed);
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy strategy, StrategyOf(request, job.job));
  if (request.hopeless == HopelessJobs::kAreRefused) {
    SIPHON_ASSIGN_OR_RETURN(StudiedPlan hopeless,
                            ProblemToPlan(footed, strategy.name, strategy.name));
    // Plans for workers are made from problems that hold as much, or more.
    if (const std::optional<std::string> why = WhyNoPlanFits(hopeless.problem)) {
      hopeless.misfit = *why;
      return hopeless;
    }
  }
  if (IsForWorkers(request, footed, strategy.name) &&
      absl::IsResourceExhausted(CheckFits({job.job, job.model, job.plan, job.schedule_csv}))) {
    return StudyWorkers(request, footed, std::string(strategy.name), nullptr);
  }
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, ProblemToPlan(footed, strategy.name, strategy.name));
  SIPHON_RETURN_IF_ERROR(CheckDrive(request, job.job, strategy.name, studied.problem));
  SIPHON_RETURN_IF_ERROR(AddBounds(request, footed, studied));
  SetSearch(request, studied.problem);
  absl::StatusOr<PlannedStep> planned = strategy.plan(studied.problem);
  studied.problem.news = nullptr;
  // Workers that keep everything hold more than a problem of tensors that may move says.
  if (strategy.name == "keep" && planned.ok() && footed.footing.for_workers) {
    const absl::Status fits = CheckFits({job.job, job.model, job.plan, job.schedule_csv});
    if (absl::IsResourceExhausted(fits)) planned = fits;
  }
  const absl::Status refused = planned.status();
  SIPHON_RETURN_IF_ERROR(TakePlan(std::move(planned), studied));
  if (const std::optional<std::string> why = HostIsShort(strategy, refused, studied.problem)) {
    studied.misfit = *why;
  }
  return studied;
}

}  // namespace

bool FollowsFile(const PlanRequest& request, const JobConfig& job) {
  return request.strategy.empty() && !job.memory.plan.empty();
}

std::string StrategyOfRequest(const PlanRequest& request, const JobConfig& job) {
  if (!request.strategy.empty()) return request.strategy;
  const bool named = job.origins.contains(std::string(kStrategyKey));
  return named ? job.memory.strategy : std::string(kDefaultStrategy);
}

absl::Status CheckRequest(const PlanRequest& request) {
  SIPHON_ASSIGN_OR_RETURN(const FootedJob footed, LoadJob(request));
  const StudiedJob& job = footed.job;
  if (FollowsFile(request, job.job)) return LoadPlanOf(job).status();
  const std::string strategy = StrategyOfRequest(request, job.job);
  if (strategy != kHarmonyStrategy) {
    SIPHON_RETURN_IF_ERROR(StrategyOf(request, job.job).status());
  }
  return ProblemToPlan(footed, strategy, strategy).status();
}

absl::StatusOr<StudiedPlan> StudyPlan(const PlanRequest& request) {
  const Stopwatch watch;
  SIPHON_ASSIGN_OR_RETURN(const FootedJob footed, LoadJob(request));
  SIPHON_ASSIGN_OR_RETURN(StudiedPlan studied, StudyStrategy(request, footed));
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

Bytes HeldBy(const StudiedPlan& studied, absl::string_view name) {
  for (const HolderPeak& holder : studied.shown().other_peaks) {
    if (holder.name == name) return holder.bytes;
  }
  return Bytes(0);
}

Bytes CapacityOf(const StudiedPlan& studied, size_t worker) {
  const std::vector<Bytes>& capacity = studied.problem.capacity;
  return capacity.empty() ? Bytes(0) : capacity[worker % capacity.size()];
}

}  // namespace siphon
