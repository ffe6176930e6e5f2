#include "launch/run/fit_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launch/plan_job/job_memory.h"
#include "launch/profile/job_problem.h"
#include "launch/profile/plan_costs.h"
#include "launch/profile/predict_step.h"
#include "planner/status.h"
#include "planner/strategies/strategies.h"

namespace siphon {
namespace {

constexpr absl::string_view kStrategy = "recompute";

// The most that one layer of a stage takes beyond its saved tensors, with its input and its output:
// when it is computed again, or in its backward, which the stage's backward, fullest elsewhere, may
// not show. Where the backward is split, a worker is often fullest in a forward, beside what waits
// for W: then what a dropped layer makes on its way, and does not save, shows as well.
Bytes MostOfOneLayer(const ModelSpec& model, const PlanningProblem& problem,
                     const StageRange& layers, int64_t microbatch) {
  const bool splits_backward = SplitsBackward(problem.schedule);
  Bytes most;
  for (int index = layers.begin; index < layers.end; ++index) {
    const LayerMemory memory = model.layers[index].memory.value_or(LayerMemory());
    const LayerProfile& layer = problem.profile.layers[index];
    Bytes taken = std::max(MostWorkspace(memory.forward, microbatch),
                           MostWorkspace(memory.backward, microbatch));
    if (splits_backward) {
      taken = std::max({taken, MostWorkspace(memory.input_backward, microbatch),
                        MostWorkspace(memory.forward, microbatch) + SavedBytes(layer)});
    }
    const Bytes input = index > 0 ? problem.profile.layers[index - 1].boundary : Bytes(0);
    most = std::max(most, taken + input + layer.boundary);
  }
  return most;
}

// The simulator gives a recomputation the room that a pass of its whole stage takes for itself. One
// of few layers may need more; that much is held all the time.
void HoldForRecomputations(const ModelSpec& model, JobProblem& made) {
  PlanningProblem& problem = made.problem;
  for (size_t stage = 0; stage < made.plan.stages.size(); ++stage) {
    const StageCost& cost = made.plan.stages[stage].cost;
    const Bytes counted = std::max(cost.forward_workspace, cost.backward_workspace);
    const Bytes taken =
        MostOfOneLayer(model, problem, problem.partition.stages[stage], made.plan.microbatch);
    MemoryByKind& held = problem.held[problem.schedule.worker_of_stage[stage].value];
    held[MemoryKind::kWorkspace] = std::max(held[MemoryKind::kWorkspace], taken - counted);
  }
}

struct Recomputation {
  JobProblem made;
  PlannedStep step;
};

absl::StatusOr<Recomputation> PlanRecomputation(const PlannedJob& planned) {
  SIPHON_ASSIGN_OR_RETURN(const PlanCosts costs,
                          LoadPlanCosts(planned.job, /*topology=*/nullptr, "", ""));
  Recomputation found;
  SIPHON_ASSIGN_OR_RETURN(found.made, ProblemOfJob(planned, {.costs = costs.source()}));
  HoldForRecomputations(planned.model, found.made);
  SIPHON_ASSIGN_OR_RETURN(found.step, PlanRecompute(found.made.problem));
  return found;
}

void TakePlan(Recomputation found, PreparedJob& prepared) {
  const SimulationInput input =
      SimulationOf(found.made.problem, found.step.mapping, found.step.memory, found.step.schedule);
  prepared.plan_text = WithSimulationInput(std::move(found.made.plan), input);
  prepared.plan_text.evaluation = prepared.plan.evaluation;
  prepared.plan_text.strategy = std::string(kStrategy);
  prepared.plan_text.predicted = PredictionOf(found.step.simulated, Nanos(0));
  prepared.plan.memory = std::move(found.step.memory);
  prepared.plan.training = std::move(found.step.schedule);
}

}  // namespace

absl::Status FitMemory(const std::string& schedule_csv, PreparedJob& prepared) {
  const PlannedJob planned{prepared.job, prepared.model.spec, prepared.plan, schedule_csv};
  const absl::Status kept = CheckFits(planned);
  if (!absl::IsResourceExhausted(kept)) return kept;
  absl::StatusOr<Recomputation> found = PlanRecomputation(planned);
  if (!found.ok() && !absl::IsResourceExhausted(found.status())) return found.status();
  const bool wanted = prepared.job.memory.strategy != "keep";
  if (!found.ok()) {
    if (!wanted) return kept;
    return absl::ResourceExhaustedError(
        absl::StrCat(kept.message(),
                     "\n  computing activations again is not enough: ", found.status().message()));
  }
  if (!wanted) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kept.message(), "\n  or --set memory.strategy=", kStrategy,
                     ": activations are dropped and computed again"));
  }
  TakePlan(*std::move(found), prepared);
  return absl::OkStatus();
}

}  // namespace siphon
