#ifndef SIPHON_PLANNER_STRATEGIES_PLAN_ON_MAP_H_
#define SIPHON_PLANNER_STRATEGIES_PLAN_ON_MAP_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/search_effort.h"

namespace siphon {

using MakeDraft = absl::StatusOr<SimulatedDraft> (*)(DraftSimulator&);

// The plan of what `make` makes of a problem, on the map on which that takes the shortest step
// (MapByStepTime), made once more for that map where it is not the first one; with second choices.
// Uplinks to the host are shared by two devices or more, so a stage that swaps much belongs beside
// one that does not, also where nothing goes to lenders; and what a stage then can copy while it
// computes is another draft. Where any plan that fits is enough, that on the first map. Without an
// effort maps are looked for as MapsForSingle says.
//
// Errors: as `make`; ResourceExhausted when its draft for the first map does not fit: names the
// worker, what it needs and the capacity.
absl::StatusOr<PlannedStep> PlanOnBestMap(const PlanningProblem& problem, MakeDraft make,
                                          absl::string_view strategy,
                                          std::optional<MapEffort> effort = std::nullopt);

// The same where it is known already what `make` makes. Requires: CheckPlanningProblem.
absl::StatusOr<PlannedStep> PlanOnBestMap(const PlanningProblem& problem, SimulatedDraft draft,
                                          MakeDraft make, absl::string_view strategy,
                                          std::optional<MapEffort> effort = std::nullopt);

// The same for a draft that `simulator` has made; `make_on` makes it for a map.
absl::StatusOr<PlannedStep> PlanOnBestMap(
    DraftSimulator& simulator, SimulatedDraft draft,
    absl::FunctionRef<absl::StatusOr<SimulatedDraft>(const DeviceMapping&)> make_on,
    absl::string_view strategy, std::optional<MapEffort> effort = std::nullopt);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_PLAN_ON_MAP_H_
