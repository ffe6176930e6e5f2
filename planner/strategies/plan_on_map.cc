#include "planner/strategies/plan_on_map.h"

#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/maps/map_draft.h"
#include "planner/drafts/search_effort.h"
#include "planner/search/search_drafts.h"
#include "planner/second_choices/second_choices.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Makes the problem's draft for one map. Refers to the problem.
auto MakeOn(const PlanningProblem& problem, MakeDraft make) {
  return [&problem, make](const DeviceMapping& mapping) {
    PlanningProblem placed = problem;
    placed.mapping = mapping;
    DraftSimulator there(placed);
    return make(there);
  };
}

}  // namespace

absl::StatusOr<PlannedStep> PlanOnBestMap(
    DraftSimulator& simulator, SimulatedDraft draft,
    absl::FunctionRef<absl::StatusOr<SimulatedDraft>(const DeviceMapping&)> make_on,
    absl::string_view strategy, std::optional<MapEffort> effort) {
  const PlanningProblem& problem = simulator.problem();
  if (!Fits(draft) || IsEnough(problem, draft)) {
    return PlannedOf(problem, std::move(draft), strategy);
  }
  const MapEffort maps = effort.value_or(MapsForSingle(problem));
  const DeviceMapping first = draft.draft.mapping;
  SIPHON_ASSIGN_OR_RETURN(MappedDraft mapped, MapByStepTime(simulator, std::move(draft), maps));
  if (mapped.draft.draft.mapping != first) {
    SIPHON_ASSIGN_OR_RETURN(const bool better,
                            TakeIfBetter(make_on(mapped.draft.draft.mapping), mapped.draft));
    if (better) {
      SIPHON_ASSIGN_OR_RETURN(mapped, MapByStepTime(simulator, std::move(mapped.draft), maps));
    }
  }
  SIPHON_RETURN_IF_ERROR(AddSecondChoices(simulator, mapped.draft));
  SIPHON_ASSIGN_OR_RETURN(PlannedStep planned,
                          PlannedOf(problem, std::move(mapped.draft), strategy));
  if (mapped.found) planned.map = ProofOf(problem.score, *mapped.found);
  return planned;
}

absl::StatusOr<PlannedStep> PlanOnBestMap(const PlanningProblem& problem, MakeDraft make,
                                          absl::string_view strategy,
                                          std::optional<MapEffort> effort) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  DraftSimulator simulator(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft draft, make(simulator));
  return PlanOnBestMap(simulator, std::move(draft), MakeOn(problem, make), strategy, effort);
}

absl::StatusOr<PlannedStep> PlanOnBestMap(const PlanningProblem& problem, SimulatedDraft draft,
                                          MakeDraft make, absl::string_view strategy,
                                          std::optional<MapEffort> effort) {
  DraftSimulator simulator(problem);
  return PlanOnBestMap(simulator, std::move(draft), MakeOn(problem, make), strategy, effort);
}

}  // namespace siphon
