#ifndef SIPHON_PLANNER_STRATEGIES_WEIGHT_DRAFT_H_
#define SIPHON_PLANNER_STRATEGIES_WEIGHT_DRAFT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/memory_plan.h"
#include "planner/strategies/planning_problem.h"

namespace siphon {

// What of a layer's weights is with the host while nobody needs it.
struct LayerWeights {
  bool parameters = false;
  bool gradients = false;
  bool optimizer_state = false;
  friend bool operator==(const LayerWeights&, const LayerWeights&) = default;
};

struct StageWeights {
  std::vector<LayerWeights> layers;  // of the stage
  UpdatePlace update = UpdatePlace::kDevice;
  friend bool operator==(const StageWeights&, const StageWeights&) = default;
};

// A memory plan that keeps activations and sends weights to the host: a stage's F, B, I and W have
// what is away only while they are at its layer (WeightResidence::kLayerByLayer). [stage]
using WeightDraft = std::vector<StageWeights>;

// All stay.
WeightDraft KeepingWeights(const PlanningProblem& problem);

// Whether the stage's weights can be away: not with updates in the middle of the step.
bool CanStream(const PlanningProblem& problem, StageId stage);

// What is away has a group a layer, and so has optimizer state that steps with it, even where it
// has no bytes; the rest goes by neighbouring layers.
MemoryPlan PlanOf(const PlanningProblem& problem, const WeightDraft& draft);

struct SimulatedWeights {
  WeightDraft draft;
  MemoryPlan memory;
  Schedule schedule;
  SimulatedStep simulated;    // without limits
  std::vector<Bytes> excess;  // [worker]: above its capacity, of all its replicas the most
};
bool Fits(const SimulatedWeights& simulated);

// Workers are where the problem wants them, or in order. Errors: InvalidArgument when there is no
// way to the host, ResourceExhausted when that has too little memory.
absl::StatusOr<SimulatedWeights> SimulateWeights(const PlanningProblem& problem, WeightDraft draft);

// A part of a layer's weights that goes to the host; never kActivations.
struct WeightMove {
  int stage = 0;
  int layer = 0;  // of the stage
  GroupKind kind = GroupKind::kParameters;
  friend bool operator==(const WeightMove&, const WeightMove&) = default;
};

// The least number of each worker's moves with which it fits, in the given order, by bisection of
// all workers at once; where even all of them do not fit, all. Errors: as SimulateWeights.
// O(log(moves)) simulations.
absl::StatusOr<SimulatedWeights> FitWeights(const PlanningProblem& problem,
                                            const std::vector<std::vector<WeightMove>>& moves);

// The plan, checked against all limits. Errors: ResourceExhausted when it does not fit: names the
// worker that needs most beyond its capacity.
absl::StatusOr<PlannedStep> PlannedOf(const PlanningProblem& problem, SimulatedWeights simulated,
                                      absl::string_view strategy);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_WEIGHT_DRAFT_H_
