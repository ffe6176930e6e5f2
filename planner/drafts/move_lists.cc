#include "planner/drafts/move_lists.h"

#include <algorithm>
#include <cstddef>

#include "planner/status.h"

namespace siphon {
namespace {

bool HasStep(const PlanningProblem& problem, StageId stage) {
  const int worker = problem.schedule.worker_of_stage[stage.value].value;
  const std::vector<Action>& program = problem.schedule.programs[worker];
  return std::any_of(program.begin(), program.end(), [stage](const Action& action) {
    return action.kind == ActionKind::kStep && action.stage == stage;
  });
}

// The stages of each worker, ascending.
std::vector<std::vector<StageId>> StagesOfWorkers(const PlanningProblem& problem) {
  std::vector<std::vector<StageId>> stages;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    stages.push_back(StagesOf(problem.schedule, WorkerId(worker)));
  }
  return stages;
}

}  // namespace

MoveLists ActivationMoves(const PlanningProblem& problem, Placement to, LayerOrder order) {
  MoveLists lists;
  for (const std::vector<StageId>& stages : StagesOfWorkers(problem)) {
    std::vector<DraftMove>& moves = lists.emplace_back();
    for (const StageId stage : stages) {
      const StageRange& layers = problem.partition.stages[stage.value];
      for (int layer = layers.begin; layer < layers.end; ++layer) {
        if (SavedBytes(problem.profile.layers[layer]) == Bytes(0)) continue;
        moves.push_back({.stage = stage.value, .layer = layer - layers.begin, .to = to});
      }
    }
    if (order == LayerOrder::kLastLayersFirst) std::reverse(moves.begin(), moves.end());
  }
  return lists;
}

MoveLists OptimizerStateMoves(const PlanningProblem& problem, Placement to) {
  MoveLists lists;
  for (const std::vector<StageId>& stages : StagesOfWorkers(problem)) {
    std::vector<DraftMove>& moves = lists.emplace_back();
    for (const StageId stage : stages) {
      if (!HasStep(problem, stage)) continue;
      const StageRange& layers = problem.partition.stages[stage.value];
      for (int layer = layers.begin; layer < layers.end; ++layer) {
        if (problem.profile.layers[layer].optimizer_state == Bytes(0)) continue;
        moves.push_back({.stage = stage.value,
                         .kind = GroupKind::kOptimizerState,
                         .layer = layer - layers.begin,
                         .to = to});
      }
    }
    std::reverse(moves.begin(), moves.end());
  }
  return lists;
}

MoveLists WeightVersionMoves(const PlanningProblem& problem, Placement to) {
  MoveLists lists;
  const std::vector<int> versions = PeakWeightVersions(problem.schedule);
  for (const std::vector<StageId>& stages : StagesOfWorkers(problem)) {
    std::vector<DraftMove>& moves = lists.emplace_back();
    for (const StageId stage : stages) {
      if (versions[stage.value] == 1) continue;
      const StageRange& layers = problem.partition.stages[stage.value];
      for (int layer = layers.begin; layer < layers.end; ++layer) {
        if (problem.profile.layers[layer].parameters == Bytes(0)) continue;
        moves.push_back({.stage = stage.value,
                         .kind = GroupKind::kWeightVersions,
                         .layer = layer - layers.begin,
                         .to = to});
      }
    }
  }
  return lists;
}

MoveLists UpdateMoves(const PlanningProblem& problem) {
  MoveLists lists;
  for (const std::vector<StageId>& stages : StagesOfWorkers(problem)) {
    std::vector<DraftMove>& moves = lists.emplace_back();
    for (const StageId stage : stages) {
      if (!HasStep(problem, stage)) continue;
      moves.push_back({.stage = stage.value, .what = DraftMove::What::kUpdateOnHost});
    }
  }
  return lists;
}

bool AnyMove(const MoveLists& moves) {
  return std::any_of(moves.begin(), moves.end(),
                     [](const std::vector<DraftMove>& worker) { return !worker.empty(); });
}

MoveLists Chain(MoveLists first, const MoveLists& then) {
  SIPHON_CHECK(first.size() == then.size(), "both lists are of the same workers");
  for (size_t worker = 0; worker < first.size(); ++worker) {
    first[worker].insert(first[worker].end(), then[worker].begin(), then[worker].end());
  }
  return first;
}

}  // namespace siphon
