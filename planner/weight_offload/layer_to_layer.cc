#include "planner/weight_offload/layer_to_layer.h"

#include <algorithm>
#include <utility>

namespace siphon {
namespace {

// Everything waits for what was listed before it, but for a transfer beside one in the other
// direction.
class TurnWriter {
 public:
  explicit TurnWriter(const WeightOffloadProblem& problem) : problem_(problem) {
    for (const WeightOffloadLayer& layer : problem.layers) {
      plan_.present.push_back(layer.weight.value == 0);
    }
    plan_.present.back() = true;
  }

  void Operation(WeightTaskKind kind, int layer) { turn_ = {Append(kind, layer)}; }

  // Moves weights that the turn before has left; a layer below 0 means none.
  void Transfers(int sent, int fetched) {
    std::vector<int> ended;
    if (HasWeight(sent)) {
      ended.push_back(Append(WeightTaskKind::kSend, sent));
      sent_ = ended.back();
    }
    if (HasWeight(fetched)) ended.push_back(Append(WeightTaskKind::kFetch, fetched));
    if (!ended.empty()) turn_ = std::move(ended);
  }

  void DeleteAfterSend(int layer) {
    if (HasWeight(layer)) plan_.deletions.push_back({layer, {sent_}});
  }
  void DeleteNow(int layer) {
    if (HasWeight(layer)) plan_.deletions.push_back({layer, turn_});
  }

  WeightOffloadPlan Done() && { return std::move(plan_); }

 private:
  bool HasWeight(int layer) const { return layer >= 0 && problem_.layers[layer].weight.value > 0; }

  int Append(WeightTaskKind kind, int layer) {
    plan_.tasks.push_back({kind, layer, turn_});
    return static_cast<int>(plan_.tasks.size()) - 1;
  }

  const WeightOffloadProblem& problem_;
  WeightOffloadPlan plan_;
  std::vector<int> turn_;  // what the next turn waits for
  int sent_ = 0;
};

}  // namespace

WeightOffloadPlan LayerToLayerPlan(const WeightOffloadProblem& problem) {
  constexpr int kNone = -1;
  const int layers = static_cast<int>(problem.layers.size());
  TurnWriter writer(problem);
  for (int layer = layers - 1; layer >= 0; --layer) {
    writer.Operation(WeightTaskKind::kBackward, layer);
    writer.Transfers(layer, layer - 1);
    if (layer > 0) writer.DeleteAfterSend(layer);
  }
  for (int layer = 0; layer < layers; ++layer) {
    writer.Operation(WeightTaskKind::kForward, layer);
    if (layer == layers - 1) break;
    writer.DeleteNow(layer);
    writer.Transfers(kNone, layer + 1);
  }
  return std::move(writer).Done();
}

Nanos LayerToLayerIdle(const WeightOffloadProblem& problem) {
  const int layers = static_cast<int>(problem.layers.size());
  Nanos idle = SendTime(problem, 0);
  for (int layer = 1; layer < layers; ++layer) {
    idle += FetchTime(problem, layer);
    idle += std::max(FetchTime(problem, layer - 1), SendTime(problem, layer));
  }
  return idle;
}

}  // namespace siphon
