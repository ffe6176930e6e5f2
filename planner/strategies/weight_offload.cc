#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "planner/status.h"
#include "planner/strategies/strategies.h"
#include "planner/strategies/weight_draft.h"
#include "planner/weight_offload/select_removals.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {
namespace {

// The order of removals does not depend on it; fast enough that times of all weights can be
// counted.
constexpr BytesPerSecond kAnyRate{1'000'000'000'000};

// A layer of one of the worker's stages.
struct WorkerLayer {
  int stage = 0;
  int layer = 0;  // of the stage
  const LayerProfile* profile = nullptr;
};

std::vector<WorkerLayer> LayersOf(const PlanningProblem& problem, WorkerId worker) {
  std::vector<WorkerLayer> layers;
  for (const StageId stage : StagesOf(problem.schedule, worker)) {
    if (!CanStream(problem, stage)) continue;
    const StageRange& range = problem.partition.stages[stage.value];
    for (int layer = range.begin; layer < range.end; ++layer) {
      layers.push_back({stage.value, layer - range.begin, &problem.profile.layers[layer]});
    }
  }
  return layers;
}

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

// Layers as far apart from each other and from the ends of their stage as can be, so that one's
// copy has the most work to hide behind: the greedy looks at memory alone, and equal layers are
// equal to it.
std::vector<int> SpreadOrder(const std::vector<WorkerLayer>& layers) {
  std::vector<int> order;
  const auto count = static_cast<int>(layers.size());
  std::vector<bool> is_end(layers.size());
  // To the nearest layer taken, or end of its stage; -1: taken.
  std::vector<int> room(layers.size());
  for (int layer = 0; layer < count; ++layer) {
    int first = layer;
    int last = layer;
    while (first > 0 && layers[first - 1].stage == layers[layer].stage) --first;
    while (last + 1 < count && layers[last + 1].stage == layers[layer].stage) ++last;
    is_end[layer] = layer == first || layer == last;
    room[layer] = 1 + std::min(layer - first, last - layer);
  }
  for (int taken = 0; taken < count; ++taken) {
    int next = 0;
    for (int layer = 1; layer < count; ++layer) {
      const bool better =
          room[layer] != room[next] ? room[layer] > room[next] : is_end[next] && !is_end[layer];
      if (better) next = layer;
    }
    order.push_back(next);
    for (int layer = 0; layer < count; ++layer) {
      if (layers[layer].stage != layers[next].stage) continue;
      room[layer] = std::min(room[layer], std::abs(layer - next));
    }
    room[next] = -1;
  }
  return order;
}

// Layers in the order in which Algorithm 1 lets their weights leave, either between forward and
// backward or between backward and forward: with several microbatches under way there is no
// difference. Last those that it would keep, later ones first.
absl::StatusOr<std::vector<int>> GreedyOrder(const std::vector<WorkerLayer>& layers) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Removal> removals,
                          SelectRemovals(OneDevice(layers), Discount::kUse));
  std::vector<int> order;
  std::vector<bool> taken(layers.size(), false);
  const auto take = [&](int layer) {
    if (!taken[layer]) order.push_back(layer);
    taken[layer] = true;
  };
  for (const Removal& removal : removals) take(removal.layer);
  for (int layer = static_cast<int>(layers.size()) - 1; layer >= 0; --layer) take(layer);
  return order;
}

Bytes BytesOf(const LayerProfile& layer, GroupKind kind) {
  return kind == GroupKind::kParameters  ? layer.parameters
         : kind == GroupKind::kGradients ? layer.gradients
                                         : layer.optimizer_state;
}

std::vector<WeightMove> MovesOf(const std::vector<WorkerLayer>& layers,
                                const std::vector<int>& order) {
  std::vector<WeightMove> moves;
  // What moves once a step, what comes in with each action, what goes out again each time.
  for (const GroupKind kind :
       {GroupKind::kOptimizerState, GroupKind::kParameters, GroupKind::kGradients}) {
    for (const int index : order) {
      const WorkerLayer& layer = layers[index];
      if (BytesOf(*layer.profile, kind) == Bytes(0)) continue;
      moves.push_back({.stage = layer.stage, .layer = layer.layer, .kind = kind});
    }
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
absl::StatusOr<PlannedStep> PlanWeightOffloading(const PlanningProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckPlanningProblem(problem));
  std::vector<std::vector<WeightMove>> greedy;  // [worker]
  std::vector<std::vector<WeightMove>> spread;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    const std::vector<WorkerLayer> layers = LayersOf(problem, WorkerId(worker));
    std::vector<int> order;
    if (!layers.empty()) {
      SIPHON_ASSIGN_OR_RETURN(order, GreedyOrder(layers));
    }
    greedy.push_back(MovesOf(layers, order));
    spread.push_back(MovesOf(layers, SpreadOrder(layers)));
  }
  SIPHON_ASSIGN_OR_RETURN(SimulatedWeights fitted, FitWeights(problem, greedy));
  if (Fits(fitted) && fitted.draft != KeepingWeights(problem)) {
    SIPHON_ASSIGN_OR_RETURN(SimulatedWeights other, FitWeights(problem, spread));
    const bool faster = other.simulated.step_time < fitted.simulated.step_time;
    if (Fits(other) && faster) fitted = std::move(other);
  }
  return PlannedOf(problem, std::move(fitted), "weight_offload");
}

}  // namespace siphon
