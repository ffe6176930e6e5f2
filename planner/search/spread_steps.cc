#include "planner/search/spread_steps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/topology.h"

namespace siphon {
namespace {

// Workers below one switch each, in the order of their numbers.
std::vector<std::vector<int>> WorkersBySwitch(const PlanningProblem& problem,
                                              const DeviceMapping& mapping) {
  std::map<int, std::vector<int>> below;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    const DeviceId device = mapping.device_of_worker[static_cast<size_t>(worker)];
    below[SwitchOf(problem.topology, device).value_or(-1)].push_back(worker);
  }
  std::vector<std::vector<int>> groups;
  for (auto& [place, workers] : below) groups.push_back(std::move(workers));
  return groups;
}

// What the host has stays with it, swapped.
void StepOn(UpdatePlace place, StageDraft& stage) {
  if (stage.update == place) return;
  if (place == UpdatePlace::kHost) return PutStepOnHost(stage);
  stage.update = place;
}

// All of it on the device, but what leaves from here on leaves to the host's step.
DraftPlan WithStateKept(const PlanningProblem& problem, DraftPlan draft) {
  for (const std::vector<DraftMove>& moves : UpdateMoves(problem)) {
    for (const DraftMove& move : moves) {
      StageDraft& stage = draft.stages[static_cast<size_t>(move.stage)];
      stage.update = UpdatePlace::kHost;
      std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kKeep);
    }
  }
  return draft;
}

}  // namespace

std::vector<DraftPlan> SpreadSteps(const PlanningProblem& problem, const DraftPlan& draft) {
  std::vector<DraftPlan> spread;
  const std::vector<std::vector<int>> groups = WorkersBySwitch(problem, draft.mapping);
  const MoveLists updates = UpdateMoves(problem);
  size_t most = 0;
  for (const std::vector<int>& workers : groups) most = std::max(most, workers.size());
  for (size_t on_host = 0; on_host <= most; ++on_host) {
    for (const bool last : {true, false}) {
      DraftPlan changed = draft;
      for (const std::vector<int>& workers : groups) {
        for (size_t place = 0; place < workers.size(); ++place) {
          const size_t before = last ? workers.size() - 1 - place : place;
          const UpdatePlace where = before < on_host ? UpdatePlace::kHost : UpdatePlace::kDevice;
          for (const DraftMove& move : updates[static_cast<size_t>(workers[place])]) {
            StepOn(where, changed.stages[static_cast<size_t>(move.stage)]);
          }
        }
      }
      const bool known =
          changed == draft || std::find(spread.begin(), spread.end(), changed) != spread.end();
      if (!known) spread.push_back(std::move(changed));
    }
  }
  return spread;
}

absl::StatusOr<SimulatedDraft> BestSpreadSteps(DraftSimulator& simulator,
                                               const SimulatedDraft& best) {
  absl::StatusOr<SimulatedDraft> found = absl::ResourceExhaustedError("nothing tried");
  const PlanningProblem& problem = simulator.problem();
  if (!HostMayStep(problem, best.draft.mapping)) return found;
  for (DraftPlan& draft : SpreadSteps(problem, best.draft)) {
    found = Better(std::move(found), simulator.Run(std::move(draft)));
  }
  return found;
}

absl::StatusOr<SimulatedDraft> BestOfTheRestOnHost(DraftSimulator& simulator,
                                                   const SimulatedDraft& best) {
  absl::StatusOr<SimulatedDraft> found = absl::ResourceExhaustedError("nothing tried");
  const PlanningProblem& problem = simulator.problem();
  if (!HostMayStep(problem, best.draft.mapping)) return found;
  const MoveLists state = OptimizerStateMoves(problem, Placement::kHostSwap);
  const MoveLists again =
      ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst);
  const DraftPlan with_best = WithStateKept(problem, best.draft);
  found = Better(std::move(found), FitMoves(simulator, with_best, state));
  DraftPlan kept = KeepingDraft(problem);
  kept.mapping = best.draft.mapping;
  kept = WithStateKept(problem, std::move(kept));
  found = Better(std::move(found), FitMoves(simulator, kept, Chain(state, again)));
  return Better(std::move(found), FitMoves(simulator, kept, Chain(again, state)));
}

}  // namespace siphon
