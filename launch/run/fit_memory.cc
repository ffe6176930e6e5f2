#include "launch/run/fit_memory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/process/inject_fault.h"
#include "launch/profile/budget_second_choices.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/moving_state.h"
#include "launch/profile/plan_costs.h"
#include "launch/profile/plan_in_file.h"
#include "launch/profile/plan_live_step.h"
#include "launch/profile/predict_step.h"
#include "launch/topology/job_topology.h"
#include "planner/memory/stage_passes.h"
#include "planner/status.h"
#include "planner/strategies/lower_memory_plan.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

constexpr char kRecompute[] = "recompute";
// Of CPU workers, who park in memory that they have mapped.
constexpr Bytes kCacheLine{64};

// The most that one layer of a stage takes beyond its saved tensors, with its input and its output:
// when it is computed again, or in its backward, which the stage's backward, fullest elsewhere, may
// not show. Where the backward is split, a worker is often fullest in a forward, beside what waits
// for W: then what a dropped layer makes on its way, and does not save, shows as well. So it does
// in 16 bits, where activations are half as large beside optimizer state that is on its way out.
Bytes MostOfOneLayer(const MemoryInputs& inputs, const PlanningProblem& problem,
                     const StageRange& layers) {
  const bool fullest_in_forward =
      SplitsBackward(problem.schedule) || inputs.precision != Precision::kFloat32;
  Bytes most;
  for (int index = layers.begin; index < layers.end; ++index) {
    const LayerWorkspace workspace = WorkspaceOf(inputs, index);
    const LayerProfile& layer = problem.profile.layers[index];
    Bytes taken = std::max(workspace.forward, workspace.backward);
    if (fullest_in_forward) {
      taken = std::max({taken, workspace.input_backward, workspace.forward + SavedBytes(layer)});
    }
    const Bytes input = index > 0 ? problem.profile.layers[index - 1].boundary : Bytes(0);
    most = std::max(most, taken + input + layer.boundary);
  }
  return most;
}

// The simulator gives a recomputation, and each part of a pass that waits for weights, the room
// that a pass of its whole stage takes for itself beside all that it has saved. One of few layers
// may need more; that much is held all the time.
void HoldForSingleLayers(const MemoryInputs& inputs, JobProblem& made) {
  PlanningProblem& problem = made.problem;
  for (size_t stage = 0; stage < made.plan.stages.size(); ++stage) {
    const StageCost& cost = made.plan.stages[stage].cost;
    const Bytes counted = std::max(cost.forward_workspace, cost.backward_workspace);
    const Bytes taken = MostOfOneLayer(inputs, problem, problem.partition.stages[stage]);
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    held[MemoryKind::kWorkspace] = std::max(held[MemoryKind::kWorkspace], taken - counted);
  }
}

// Scalars, as losses and norms of gradients, that no figure of a layer has; where the backward is
// split, up to 192 bytes of them were found at once.
constexpr Bytes kScalars{64};
constexpr Bytes kScalarsOfHalves{256};

// Where no ring takes what is sent, it stays with the sender until its receiver has it, however
// late that is.
void HoldUntilTaken(const PlannedJob& planned, PlanningProblem& problem) {
  if (planned.job.pipeline.transport != "mpi" && RingsHoldBoundaries(planned.plan, planned.model)) {
    return;
  }
  problem.transport.sent = SentMemory::kUntilTaken;
  problem.transport.room = 0;
}

// Layer by layer, the simulator has what a pass sends on only from its last layer on. The room that
// the pass takes for itself was counted beside it.
void HoldBoundary(JobProblem& made) {
  PlanningProblem& problem = made.problem;
  for (size_t stage = 0; stage < made.plan.stages.size(); ++stage) {
    const StageCost& cost = made.plan.stages[stage].cost;
    // Where the backward is split, more of it is under way at once.
    const Bytes sent_on = SplitsBackward(problem.schedule)
                              ? (cost.input + cost.output) * 4 + kScalarsOfHalves
                              : std::max(cost.input, cost.output) + kScalars;
    Bytes& held =
        problem.held[problem.schedule.worker_of_stage[stage].value][MemoryKind::kWorkspace];
    held = std::max(held, sent_on);
  }
}

// Strategies that may compute layers again, or have weights in only while a pass is at their
// layers, beside others.
bool TakesPassesApart(absl::string_view strategy) {
  for (const absl::string_view each : {kRecompute, "mpress", "weight_offload", "l2l", "auto"}) {
    if (strategy == each) return true;
  }
  return false;
}

// Whether workers may park on a drive: the one that has memory.nvme_directory.
bool UsesDrive(const JobConfig& job, absl::string_view strategy) {
  return strategy == "nvme_swap" || !job.memory.nvme_directory.empty();
}

}  // namespace

absl::StatusOr<JobProblem> ProblemOfWorkers(const PlannedJob& planned, const std::string& strategy,
                                            const MeasuredCosts* measured) {
  SIPHON_ASSIGN_OR_RETURN(const PlanCosts costs,
                          LoadPlanCosts(planned.job, /*topology=*/nullptr, "", ""));
  JobMachine machine{.costs = costs.source()};
  ModelProfile run_times;
  if (measured != nullptr) {
    SIPHON_ASSIGN_OR_RETURN(run_times, LayerTimes(planned, machine.costs));
    run_times = AtPace(std::move(run_times), planned.plan.partition, measured->stages);
    machine.costs.run_times = &run_times;
  }
  std::optional<Topology> throttled;
  if (strategy != kRecompute) {  // something moves
    machine.workers = WorkerMachine::kDevices;
    machine.needs_drive = UsesDrive(planned.job, strategy);
    SIPHON_ASSIGN_OR_RETURN(throttled, LoadThrottledTopology(planned.job));
    if (throttled.has_value()) machine.topology = &*throttled;
  }
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfJob(planned, machine));
  HoldUntilTaken(planned, made.problem);
  if (strategy == kRecompute) return made;
  made.problem.granule = kCacheLine;
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  HoldWhatCannotMove(inputs, made.problem);
  std::vector<NvmeDrive>& drives = made.problem.topology.drives;
  drives.resize(machine.needs_drive ? 1 : 0);  // whatever a topology has
  HoldBoundary(made);
  if (measured != nullptr) {
    made.problem.topology = AtPace(std::move(made.problem.topology), measured->links);
    made.problem.mapping = measured->mapping;
  }
  return made;
}

namespace {

absl::StatusOr<FittingStep> PlanByStrategy(const PlannedJob& planned, const std::string& strategy,
                                           const MeasuredCosts* measured) {
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy found, FindMemoryStrategy(strategy));
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfWorkers(planned, strategy, measured));
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  if (TakesPassesApart(strategy)) HoldForSingleLayers(inputs, made);
  SIPHON_ASSIGN_OR_RETURN(LiveStep live,
                          PlanLiveStep(std::move(made.problem), found,
                                       SharedGradientBytes(planned.model, planned.plan.partition,
                                                           planned.plan.training),
                                       &inputs));
  JobProblem recomputing{live.problem, made.plan};
  HoldForSingleLayers(inputs, recomputing);
  SIPHON_ASSIGN_OR_RETURN(live.step.memory, BudgetSecondChoices(live, recomputing.problem.held));
  return FittingStep{std::move(live), std::move(made.plan)};
}

// Whether passes go apart by the plan itself: it computes layers again, or parameters or gradients
// leave.
bool TakesPassesApart(const MemoryPlan& plan) {
  return absl::c_any_of(plan.stages, [](const StagePlan& stage) {
    return absl::c_any_of(stage.groups, [](const PlannedGroup& planned) {
      const GroupKind kind = planned.group.kind;
      const bool weights = kind == GroupKind::kParameters || kind == GroupKind::kGradients;
      return planned.choice.placement == Placement::kRecompute ||
             (weights && IsSwap(planned.choice.placement));
    });
  });
}

// Whose problem is that of the plan.
std::string StrategyLike(const PlanText& plan) {
  if (ParksOnDrives(plan.memory)) return "nvme_swap";
  const bool without_places = plan.topology.devices.empty() && !MovesAnything(plan.memory);
  return without_places ? std::string(kRecompute) : "auto";
}

absl::StatusOr<FittingStep> StepByFile(const PlannedJob& planned, const PlanInFile& file) {
  const MemoryPlan& memory = file.plan.memory;
  SIPHON_ASSIGN_OR_RETURN(JobProblem made,
                          ProblemOfWorkers(planned, StrategyLike(file.plan), nullptr));
  // As for a strategy that moves nothing.
  SIPHON_ASSIGN_OR_RETURN(const JobProblem whole, ProblemOfWorkers(planned, kRecompute, nullptr));
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  JobProblem apart = made;
  HoldForSingleLayers(inputs, apart);
  const auto live_step = [&](const PlanningProblem& problem) -> absl::StatusOr<LiveStep> {
    SIPHON_ASSIGN_OR_RETURN(PlannedStep step, StepInFile(file, problem, whole.problem.profile));
    return LiveStepOf(
        problem, std::move(step),
        SharedGradientBytes(planned.model, planned.plan.partition, planned.plan.training), &inputs);
  };
  const bool takes_apart = TakesPassesApart(memory);
  absl::StatusOr<LiveStep> live =
      live_step(takes_apart || TakesPassesApart(file.plan.strategy) ? apart.problem : made.problem);
  // The plan of a strategy that may, and has not.
  if (absl::IsResourceExhausted(live.status()) && !takes_apart) live = live_step(made.problem);
  SIPHON_RETURN_IF_ERROR(live.status());
  JobProblem recomputing{live->problem, made.plan};
  HoldForSingleLayers(inputs, recomputing);
  SIPHON_ASSIGN_OR_RETURN(live->step.memory, BudgetSecondChoices(*live, recomputing.problem.held));
  return FittingStep{*std::move(live), std::move(made.plan)};
}

// An evaluation goes by the same plan, and has parameters that are away layer by layer.
absl::StatusOr<Schedule> EvaluationOf(const TrainingPlan& plan, const MemoryPlan& memory) {
  if (plan.evaluation.programs.empty()) return plan.evaluation;
  return LowerMemoryPlan(plan.evaluation, memory,
                         {.weights = std::vector<WeightResidence>(memory.stages.size(),
                                                                  WeightResidence::kLayerByLayer)});
}

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

// Where nothing has to move, messages do all the same.
void ExpectThrottledMessages(PreparedJob& prepared) {
  PlanText& plan = prepared.plan_text;
  if (!prepared.throttled.has_value() || plan.workers.size() > prepared.throttled->devices.size()) {
    return;
  }
  plan.topology = *prepared.throttled;
  plan.topology.name = NameForPlan(plan.topology.name);
  plan.topology.device_kind = NameForPlan(plan.topology.device_kind);
  plan.mapping = IdentityMapping(static_cast<int>(plan.workers.size()));
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

// The job follows the file, whatever would fit.
absl::Status FollowPlanFile(const PlannedJob& planned, const absl::Status& kept,
                            PreparedJob& prepared) {
  SIPHON_ASSIGN_OR_RETURN(const PlanInFile file, LoadPlanInFile(prepared.job));
  SIPHON_RETURN_IF_ERROR(CheckPlanOfJob(file, planned));
  if (file.plan.memory.stages.empty()) {
    if (kept.ok()) ExpectThrottledMessages(prepared);
    return Annotate(kept, absl::StrCat(file.path, " keeps everything"));
  }
  absl::StatusOr<FittingStep> found = StepByFile(planned, file);
  if (absl::IsResourceExhausted(found.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        TighterWorker(planned, file), ": the plan does not fit: ", found.status().message(),
        "\n  without memory.plan the job is planned with the room that workers take"));
  }
  SIPHON_RETURN_IF_ERROR(found.status());
  return TakePlan(*std::move(found), file.plan.strategy, prepared);
}

// What is said beside the changes of the job that fit, where one of the strategies does.
std::string StrategyThatFits(const PlannedJob& planned) {
  for (const std::string strategy : {kRecompute, "auto"}) {
    if (!PlanFittingStep(planned, strategy, nullptr).ok()) continue;
    return absl::StrCat("\n  or --set memory.strategy=", strategy,
                        strategy == kRecompute
                            ? ": activations are dropped and computed again"
                            : ": tensors are parked elsewhere, or computed again");
  }
  return "";
}

}  // namespace

bool ParksAnything(const std::vector<WorkerParking>& parking) {
  return absl::c_any_of(parking, [](const WorkerParking& worker) { return !worker.bytes.empty(); });
}

// What workers take beside the planner's figures may be too much for the plan of `auto`, and not
// for that of another strategy: then the fastest of those.
absl::StatusOr<FittingStep> PlanFittingStep(const PlannedJob& planned, const std::string& strategy,
                                            const MeasuredCosts* measured) {
  absl::StatusOr<FittingStep> best = PlanByStrategy(planned, strategy, measured);
  if (strategy != "auto" || !absl::IsResourceExhausted(best.status())) return best;
  for (const char* other : {"d2d_swap", kRecompute, "host_swap", "optimizer_offload", "mpress",
                            "weight_offload", "l2l"}) {
    absl::StatusOr<FittingStep> found = PlanByStrategy(planned, other, measured);
    if (!found.ok()) continue;
    const auto step_time = [](const FittingStep& step) {
      return step.live.step.simulated.step_time;
    };
    if (!best.ok() || step_time(*found) < step_time(*best)) best = std::move(found);
  }
  return best;
}

absl::StatusOr<PlanText> TextOf(const FittingStep& found, const std::string& strategy,
                                const TrainingPlan& whole) {
  const PlannedStep& step = found.live.step;
  const SimulationInput input =
      SimulationOf(found.live.problem, step.mapping, step.memory, step.schedule);
  PlanText text = WithSimulationInput(found.plan, input);
  SIPHON_ASSIGN_OR_RETURN(text.evaluation, EvaluationOf(whole, step.memory));
  text.strategy = strategy;
  text.predicted = PredictionOf(step.simulated, Nanos(0));
  return text;
}

absl::Status FitMemory(const std::string& schedule_csv, PreparedJob& prepared) {
  const PlannedJob planned{prepared.job, prepared.model.spec, prepared.plan, schedule_csv};
  const absl::Status kept = CheckFits(planned);
  if (absl::IsResourceExhausted(kept)) {
    SIPHON_ASSIGN_OR_RETURN(const MemoryEstimate estimate,
                            EstimateJob(planned, Accounting::kRuntime));
    prepared.kept_whole = FindMisfit(prepared.job, estimate);
  }
  if (!prepared.job.memory.plan.empty()) return FollowPlanFile(planned, kept, prepared);
  if (kept.ok()) ExpectThrottledMessages(prepared);
  if (!absl::IsResourceExhausted(kept)) return kept;
  const std::string& strategy = prepared.job.memory.strategy;
  if (strategy == "keep") {
    if (OverlooksCapacity()) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(kept.message(), StrategyThatFits(planned)));
  }
  absl::StatusOr<FittingStep> found = PlanFittingStep(planned, strategy, nullptr);
  if (absl::IsResourceExhausted(found.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kept.message(), "\n  ",
                     strategy == kRecompute ? std::string("computing activations again")
                                            : absl::StrCat("memory.strategy ", strategy),
                     " is not enough: ", found.status().message()));
  }
  SIPHON_RETURN_IF_ERROR(found.status());
  return TakePlan(*std::move(found), strategy, prepared);
}

}  // namespace siphon
