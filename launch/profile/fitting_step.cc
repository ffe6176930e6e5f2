#include "launch/profile/fitting_step.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "launch/profile/budget_second_choices.h"
#include "launch/profile/moving_state.h"
#include "launch/profile/predict_step.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/moves_weights.h"
#include "planner/status.h"
#include "planner/strategies/memory_strategy.h"

namespace siphon {
namespace {

absl::StatusOr<FittingStep> Budgeted(LiveStep live, const std::vector<MemoryByKind>& to_recompute,
                                     PlanText plan) {
  SIPHON_ASSIGN_OR_RETURN(BudgetedPlan budgeted, BudgetSecondChoices(live, to_recompute));
  live.step.memory = std::move(budgeted.memory);
  return FittingStep{std::move(live), std::move(plan), std::move(budgeted.peak_at_most)};
}

absl::StatusOr<FittingStep> PlanByStrategy(const WorkersOfJob& job, const std::string& strategy) {
  const PlannedJob& planned = job.planned;
  SIPHON_ASSIGN_OR_RETURN(const MemoryStrategy found, FindMemoryStrategy(strategy));
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfWorkers(job, strategy));
  SIPHON_ASSIGN_OR_RETURN(const MemoryInputs inputs, MemoryInputsOf(planned));
  if (TakesPassesApart(strategy)) HoldForSingleLayers(inputs, made);
  made.problem.goal = job.goal;
  made.problem.effort = job.effort;
  made.problem.most_effort = job.most_effort;
  made.problem.news = job.news;
  made.problem.side_by_side = job.side_by_side;
  SIPHON_ASSIGN_OR_RETURN(LiveStep live,
                          PlanLiveStep(std::move(made.problem), found,
                                       SharedGradientBytes(planned.model, planned.plan.partition,
                                                           planned.plan.training),
                                       &inputs));
  JobProblem recomputing{live.problem, made.plan};
  HoldForSingleLayers(inputs, recomputing);
  return Budgeted(std::move(live), recomputing.problem.held, std::move(made.plan));
}

// Whether passes go apart by the plan itself: it computes layers again, or parameters or gradients
// leave.
bool TakesPassesApart(const MemoryPlan& plan) {
  return absl::c_any_of(plan.stages, [](const StagePlan& stage) {
    return absl::c_any_of(stage.groups, [](const PlannedGroup& planned) {
      return planned.choice.placement == Placement::kRecompute || MovesWeights(planned);
    });
  });
}

// Whose problem is that of the plan.
absl::string_view StrategyLike(const PlanText& plan) {
  if (ParksOnDrives(plan.memory)) return "nvme_swap";
  const bool without_places =
      plan.topology.devices.empty() || !absl::StartsWith(plan.topology.name, kWorkersOf);
  return without_places && !MovesAnything(plan.memory) ? kRecomputeStrategy : "auto";
}

// An evaluation goes by the same plan, and has parameters that are away layer by layer.
absl::StatusOr<Schedule> EvaluationOf(const TrainingPlan& plan, const MemoryPlan& memory) {
  if (plan.evaluation.programs.empty()) return plan.evaluation;
  return LowerMemoryPlan(plan.evaluation, memory,
                         {.weights = std::vector<WeightResidence>(memory.stages.size(),
                                                                  WeightResidence::kLayerByLayer)});
}

}  // namespace

// What workers take beside the planner's figures may be too much for the plan of `auto`, and not
// for that of another strategy, for which less is set aside: then the fastest of those, or the
// first where that is no slower.
absl::StatusOr<FittingStep> PlanFittingStep(const WorkersOfJob& job, const std::string& strategy) {
  absl::StatusOr<FittingStep> best = PlanByStrategy(job, strategy);
  if (strategy != "auto" || (!best.ok() && !absl::IsResourceExhausted(best.status()))) return best;
  const auto step_time = [](const FittingStep& step) { return step.live.step.simulated.step_time; };
  const auto consider = [&](const char* other) {
    absl::StatusOr<FittingStep> found = PlanByStrategy(job, other);
    if (!found.ok()) return;
    if (!best.ok() || step_time(*found) < step_time(*best)) best = std::move(found);
  };
  const bool fitted = best.ok();
  if (fitted && job.goal == PlanningGoal::kAnyThatFits) return best;
  for (const char* other : {"d2d_swap", "recompute", "host_swap", "optimizer_offload"}) {
    consider(other);
  }
  if (fitted) return best;
  for (const char* other : {"mpress", "weight_offload", "l2l"}) consider(other);
  return best;
}

absl::StatusOr<FittingStep> FittingStepInFile(const WorkersOfJob& job, const PlanInFile& file) {
  const PlannedJob& planned = job.planned;
  const MemoryPlan& memory = file.plan.memory;
  SIPHON_ASSIGN_OR_RETURN(JobProblem made, ProblemOfWorkers(job, StrategyLike(file.plan)));
  // As for a strategy that moves nothing.
  SIPHON_ASSIGN_OR_RETURN(const JobProblem whole, ProblemOfWorkers(job, kRecomputeStrategy));
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
  return Budgeted(*std::move(live), recomputing.problem.held, std::move(made.plan));
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
  if (found.peak_at_most != text.predicted.peak) text.predicted.peak_at_most = found.peak_at_most;
  return text;
}

}  // namespace siphon
