#include "planner/strategies/spread_steps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "planner/strategies/fit_moves.h"
#include "planner/strategies/move_lists.h"
#include "planner/strategies/start_drafts.h"
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

void StepOn(UpdatePlace place, StageDraft& stage) {
  if (stage.update == place) return;
  stage.update = place;
  if (place == UpdatePlace::kHost) return;
  std::replace(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kKeep,
               Placement::kHostSwap);
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
  if (problem.host_step == Nanos(0) || !ReachesHost(problem, best.draft.mapping)) return found;
  for (DraftPlan& draft : SpreadSteps(problem, best.draft)) {
    found = Better(std::move(found), simulator.Run(std::move(draft)));
  }
  return found;
}

}  // namespace siphon
