#ifndef SIPHON_PLANNER_STRATEGIES_STRATEGIES_H_
#define SIPHON_PLANNER_STRATEGIES_STRATEGIES_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/planning_problem.h"

namespace siphon {

// The functions behind the table of strategies. Errors: as in MemoryStrategy.
#define SIPHON_MEMORY_STRATEGY(name, help, plan) \
  absl::StatusOr<PlannedStep> plan(const PlanningProblem& problem);
#include "planner/strategies/strategies.def"
#undef SIPHON_MEMORY_STRATEGY

// The same plans while they can still be changed; those that do not fit say by how much. Errors: as
// DraftSimulator::Run.
absl::StatusOr<SimulatedDraft> DraftKeep(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftHostSwap(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftPeerSwap(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftNvmeSwap(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftOptimizerOffload(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftVdnn(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftCapacityBased(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftWeightOffloading(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftLayerToLayer(DraftSimulator& simulator);

// Or, where that is faster, with state at home between steps.
absl::StatusOr<SimulatedDraft> DraftHostSwapOrHome(DraftSimulator& simulator);
absl::StatusOr<SimulatedDraft> DraftNvmeSwapOrHome(DraftSimulator& simulator);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_STRATEGIES_H_
