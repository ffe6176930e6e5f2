#include "planner/search/trade_changes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/drafts/weight_moves.h"
#include "planner/lowering/make_groups.h"
#include "planner/search/draft_changes.h"

namespace siphon {
namespace {

// Groups that are there at once while they come in layer by layer; as many steps are.
int LayersInUse(GroupKind kind) { return kind == GroupKind::kGradients ? 3 : 2; }

class TradeWriter {
 public:
  TradeWriter(const DraftSimulator& simulator, const DraftPlan& draft,
              const std::vector<StageId>& stages)
      : problem_(simulator.problem()),
        away_(simulator.away()),
        draft_(draft),
        stages_(stages),
        order_(draft.stages.size()) {
    for (const std::vector<WorkerLayer>& worker : SpreadLayers(problem_)) {
      for (const WorkerLayer& layer : worker) order_[layer.stage].push_back(layer.layer);
    }
  }

  std::vector<DraftPlan> Write() {
    constexpr int kParts[] = {0, 2, 1};  // one layer, half of them, all
    for (const Placement to : PossiblePlacements(problem_, draft_.mapping)) {
      if (to != Placement::kHostSwap && to != Placement::kPeerSwap) continue;
      for (const GroupKind kind :
           {GroupKind::kOptimizerState, GroupKind::kParameters, GroupKind::kGradients}) {
        for (const Placement back :
             {Placement::kRecompute, Placement::kHostSwap, Placement::kNvmeSwap}) {
          if (!Uses(draft_, back)) continue;
          for (const int part : kParts) Trade(kind, to, back, part);
        }
      }
    }
    return std::move(changes_);
  }

 private:
  void Trade(GroupKind kind, Placement to, Placement back, int part) {
    DraftPlan changed = draft_;
    for (const StageId stage : stages_) {
      const bool on_host = changed.stages[stage.value].update == UpdatePlace::kHost;
      if (kind == GroupKind::kOptimizerState && on_host) continue;
      StageDraft traded = changed.stages[stage.value];
      const Bytes room = Send(stage, kind, to, part, traded);
      if (BringBack(stage, back, room, traded)) changed.stages[stage.value] = std::move(traded);
    }
    const bool is_new = changed != draft_ && (changes_.empty() || changed != changes_.back());
    if (is_new) changes_.push_back(std::move(changed));
  }

  Bytes BytesOf(StageId stage, GroupKind kind, int layer) const {
    const StageRange& range = problem_.partition.stages[stage.value];
    const int begin = range.begin + layer;
    return GroupOf(problem_.profile, range, kind, {begin, begin + 1}).bytes;
  }

  // Returns how much room that makes.
  Bytes Send(StageId stage, GroupKind kind, Placement to, int part, StageDraft& traded) const {
    std::vector<Placement>& layers = PlacementsOf(traded, kind);
    const bool first = std::none_of(layers.begin(), layers.end(), IsSwap);
    std::vector<int> kept;
    for (const int layer : order_[stage.value]) {
      const bool has = BytesOf(stage, kind, layer) > Bytes(0);
      if (has && layers[layer] == Placement::kKeep) kept.push_back(layer);
    }
    const size_t count = part == 0 ? std::min<size_t>(1, kept.size()) : kept.size() / part;
    Bytes sent;
    Bytes largest;
    for (size_t place = 0; place < count; ++place) {
      const Bytes bytes = BytesOf(stage, kind, kept[place]);
      layers[kept[place]] = to;
      sent += bytes;
      largest = std::max(largest, bytes);
    }
    return first ? sent - largest * LayersInUse(kind) : sent;
  }

  // The first layers of those that are away, as many as there is room for.
  bool BringBack(StageId stage, Placement from, Bytes room, StageDraft& traded) const {
    bool any = false;
    std::vector<Placement>& layers = traded.activations;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      if (layers[layer] != from) continue;
      room += BytesOf(stage, GroupKind::kActivations, static_cast<int>(layer)) *
              -std::max(1, away_[stage.value]);
      if (room < Bytes(0)) break;
      layers[layer] = Placement::kKeep;
      any = true;
    }
    return any;
  }

  const PlanningProblem& problem_;
  const std::vector<int>& away_;
  const DraftPlan& draft_;
  const std::vector<StageId>& stages_;
  std::vector<std::vector<int>> order_;  // [stage]: layers whose weights can be away, spread
  std::vector<DraftPlan> changes_;
};

}  // namespace

std::vector<DraftPlan> TradesOf(const DraftSimulator& simulator, const DraftPlan& draft,
                                const std::vector<StageId>& stages) {
  return TradeWriter(simulator, draft, stages).Write();
}

}  // namespace siphon
