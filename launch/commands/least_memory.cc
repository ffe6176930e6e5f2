#include "launch/commands/least_memory.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/layer_cost.h"
#include "planner/memory/memory_kind.h"
#include "planner/schedule.h"
#include "planner/stage_cost.h"

namespace siphon {
namespace {

// Beside what its worker holds all the time, while one of the stage's layers takes time
// (planner/simulator/simulate.h says what is there when):
// - in a forward, the stage's input, which is there until the pass ends, and the pass's workspace;
// - in a backward, the gradient of the stage's output and the pass's workspace, likewise, and all
//   that the layer saved: what was dropped has been computed again by then, what was away is back;
// - in both, the layer's parameters: those that are away between uses have come in by then.
// What else is there may be nothing: other layers' tensors can be away, or not yet be made.
// Gradients and optimizer state are left out, and so is what takes no time. So it is not too much.
Bytes LeastOfStage(const StageCost& cost, const std::vector<LayerCost>& layers,
                   const LayerProfile* profiles) {
  Bytes least;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerCost& piece = layers[layer];
    const Bytes parameters = profiles[layer].parameters;
    if (piece.forward > Nanos(0)) {
      least = std::max(least, parameters + cost.input + cost.forward_workspace);
    }
    if (piece.input_backward == Nanos(0) || WholeBackward(piece) == Nanos(0)) continue;
    least = std::max(least, parameters + cost.output + cost.backward_workspace + piece.stash);
  }
  return least;
}

}  // namespace

std::vector<Bytes> LeastMemory(const PlanningProblem& problem) {
  const std::vector<StageCost> costs = StageCosts(problem.profile, problem.partition);
  const std::vector<std::vector<LayerCost>> layers = LayerCosts(problem.profile, problem.partition);
  std::vector<Bytes> least(WorkerCount(problem.schedule));
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    const LayerProfile* const first =
        problem.profile.layers.data() + problem.partition.stages[stage].begin;
    Bytes& of_worker = least[problem.schedule.worker_of_stage[stage].value];
    of_worker = std::max(of_worker, LeastOfStage(costs[stage], layers[stage], first));
  }
  for (size_t worker = 0; worker < least.size() && !problem.held.empty(); ++worker) {
    least[worker] += Total(problem.held[worker]);
  }
  return least;
}

std::optional<std::string> WhyNoPlanFits(const PlanningProblem& problem) {
  if (problem.capacity.empty()) return std::nullopt;
  const std::vector<Bytes> least = LeastMemory(problem);
  std::optional<size_t> worst;
  const auto missing = [&](size_t worker) { return least[worker] - problem.capacity[worker]; };
  for (size_t worker = 0; worker < least.size(); ++worker) {
    if (problem.capacity[worker] == Bytes(0) || missing(worker) <= Bytes(0)) continue;
    if (!worst.has_value() || missing(worker) > missing(*worst)) worst = worker;
  }
  if (!worst.has_value()) return std::nullopt;
  const auto [needed, has] = FormatApart(least[*worst], problem.capacity[*worst]);
  return absl::StrCat("worker ", *worst, " needs ", needed, " under any plan, its capacity is ",
                      has);
}

}  // namespace siphon
