#include <algorithm>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/weight_moves.h"
#include "planner/status.h"
#include "planner/strategies/plan_on_map.h"
#include "planner/strategies/strategies.h"
#include "planner/weight_offload/select_removals.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {
namespace {

// The order of removals does not depend on it; fast enough that times of all weights can be
// counted.
constexpr BytesPerSecond kAnyRate{1'000'000'000'000};

// The worker's layers as the paper's single device, which has just enough memory for each operation
// by itself: so nearly all removals are of use, and their order is that of their profit.
WeightOffloadProblem OneDevice(const std::vector<WorkerLayer>& layers) {
  WeightOffloadProblem device{.out = kAnyRate, .in = kAnyRate};
  for (const WorkerLayer& layer : layers) {
    device.layers.push_back({.name = layer.profile->name,
                             .forward = std::max(layer.profile->forward, Nanos(1)),
                             .backward = std::max(WholeBackward(*layer.profile), Nanos(1)),
                             .weight = layer.profile->parameters,
                             .activation = SavedBytes(*layer.profile)});
  }
  const std::vector<OperationMemory> memories = OperationMemories(device);
  for (int operation = 0; operation < OperationCount(device); ++operation) {
    const Bytes weight = device.layers[LayerOf(device, operation)].weight;
    device.capacity = std::max(device.capacity, memories[operation].during + weight);
  }
  return device;
}

// Layers in the order in which Algorithm 1 lets their weights leave, either between forward and
// backward or between backward and forward: with several microbatches under way there is no
// difference. Last those that it would keep, later ones first.
absl::StatusOr<std::vector<WorkerLayer>> GreedyOrder(const std::vector<WorkerLayer>& layers) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Removal> removals,
                          SelectRemovals(OneDevice(layers), Discount::kUse));
  std::vector<WorkerLayer> order;
  std::vector<bool> taken(layers.size(), false);
  const auto take = [&](int layer) {
    if (!taken[layer]) order.push_back(layers[layer]);
    taken[layer] = true;
  };
  for (const Removal& removal : removals) take(removal.layer);
  for (int layer = static_cast<int>(layers.size()) - 1; layer >= 0; --layer) take(layer);
  return order;
}

// What moves once a step, what comes in with each action, what goes out again each time.
constexpr GroupKind kKinds[] = {GroupKind::kOptimizerState, GroupKind::kParameters,
                                GroupKind::kGradients};

MoveLists MovesIn(const std::vector<std::vector<WorkerLayer>>& ordered) {
  MoveLists moves(ordered.size());
  for (const GroupKind kind : kKinds) {
    moves = Chain(std::move(moves), MovesOf(ordered, kind, Placement::kHostSwap));
  }
  return moves;
}

}  // namespace

// Beaumont, Eyraud-Dubois, Shilova, Zhao, "Weight Offloading Strategies for Training Large DNN
// Models" (hal-03580767), on each worker: as few layers' weights leave between their uses as
// needed, in the order of the greedy selection (Algorithm 1, with the discount) or, where that is
// faster, spread over the stage. The paper has no optimizer state and one microbatch; here state
// leaves first, since it moves once a step, then parameters, and gradients that add up over
// microbatches last. How many, the simulator says. Activations stay.
absl::StatusOr<SimulatedDraft> DraftWeightOffloading(DraftSimulator& simulator) {
  const PlanningProblem& problem = simulator.problem();
  std::vector<std::vector<WorkerLayer>> greedy;  // [worker]
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    std::vector<WorkerLayer> layers = StreamableLayers(problem, WorkerId(worker));
    if (!layers.empty()) {
      SIPHON_ASSIGN_OR_RETURN(layers, GreedyOrder(layers));
    }
    greedy.push_back(std::move(layers));
  }
  const DraftPlan draft = StreamingDraft(problem);
  SIPHON_ASSIGN_OR_RETURN(SimulatedDraft fitted, FitMoves(simulator, draft, MovesIn(greedy)));
  if (!Fits(fitted) || !Uses(fitted.draft, Placement::kHostSwap)) return fitted;
  return Better(std::move(fitted), FitMoves(simulator, draft, MovesIn(SpreadLayers(problem))));
}

absl::StatusOr<PlannedStep> PlanWeightOffloading(const PlanningProblem& problem) {
  return PlanOnBestMap(problem, DraftWeightOffloading, "weight_offload");
}

}  // namespace siphon
