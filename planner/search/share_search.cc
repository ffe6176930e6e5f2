#include "planner/search/share_search.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kAll = LowerMemoryOptions::kShares;
constexpr Placement kLeaving[] = {Placement::kRecompute, Placement::kNvmeSwap, Placement::kHostSwap,
                                  Placement::kPeerSwap};

// Which layers of those at a placement change.
enum class Layers { kEach, kFirst, kLast };
constexpr Layers kLayers[] = {Layers::kEach, Layers::kFirst, Layers::kLast};

// Whether a layer that is kept so far goes for what the changed ones keep from now on.
enum class InPlace { kNothing, kKeptLayer };

class ShareSearch {
 public:
  ShareSearch(DraftSimulator& simulator, SimulatedDraft start, int most_simulations)
      : simulator_(simulator),
        best_(std::move(start)),
        most_(simulator.simulations() + most_simulations) {}

  absl::StatusOr<SimulatedDraft> Run() {
    std::vector<size_t> all(best_.draft.stages.size());
    for (size_t stage = 0; stage < all.size(); ++stage) all[stage] = stage;
    for (bool better = true; better && !IsSpent();) {
      SIPHON_ASSIGN_OR_RETURN(better, Improve(all));
      for (size_t stage = 0; stage < all.size() && all.size() > 1; ++stage) {
        SIPHON_ASSIGN_OR_RETURN(const bool one, Improve({stage}));
        better |= one;
      }
    }
    SIPHON_RETURN_IF_ERROR(Take(Turned(all)).status());
    for (const size_t stage : all) SIPHON_RETURN_IF_ERROR(Take(Turned({stage})).status());
    return std::move(best_);
  }

 private:
  bool IsSpent() const { return simulator_.simulations() >= most_; }

  absl::StatusOr<bool> Improve(const std::vector<size_t>& stages) {
    constexpr int kBy[] = {-4, -2, -1, 1, 2};
    bool better = false;
    for (const Placement placement : kLeaving) {
      if (!Uses(best_.draft, placement)) continue;
      for (const Layers layers : kLayers) {
        for (const InPlace in_place : {InPlace::kNothing, InPlace::kKeptLayer}) {
          for (const int by : kBy) {
            SIPHON_ASSIGN_OR_RETURN(const bool taken,
                                    Take(Changed(stages, placement, layers, in_place, by)));
            better |= taken;
          }
        }
      }
    }
    return better;
  }

  // Other microbatches stay where forwards end and backwards begin.
  DraftPlan Turned(const std::vector<size_t>& stages) const {
    using Turn = SwapTiming::Turn;
    DraftPlan turned = best_.draft;
    for (const size_t stage : stages) {
      Turn& turn = turned.stages[stage].timing.turn;
      turn = turn == Turn::kLastStay ? Turn::kFirstStay : Turn::kLastStay;
    }
    return turned;
  }

  DraftPlan Changed(const std::vector<size_t>& stages, Placement placement, Layers layers,
                    InPlace in_place, int by) const {
    DraftPlan changed = best_.draft;
    for (const size_t stage : stages) {
      ChangeStage(placement, layers, in_place, by, changed.stages[stage]);
    }
    return changed;
  }

  static void ChangeStage(Placement placement, Layers layers, InPlace in_place, int by,
                          StageDraft& stage) {
    std::vector<size_t> places;
    for (size_t layer = 0; layer < stage.activations.size(); ++layer) {
      if (stage.activations[layer] == placement) places.push_back(layer);
    }
    if (places.empty()) return;
    if (layers == Layers::kFirst) places = {places.front()};
    if (layers == Layers::kLast) places = {places.back()};
    int kept = 0;  // shares of layers
    for (const size_t layer : places) {
      const int before = stage.shares[layer];
      const int share = std::min(kAll, before + by);
      kept += before - std::max(0, share);
      if (share > 0) {
        stage.shares[layer] = share;
        continue;
      }
      stage.shares[layer] = kAll;
      stage.activations[layer] = Placement::kKeep;
    }
    if (in_place == InPlace::kNothing || kept <= 0) return;
    // What is computed again goes from a stage's last layers, what is swapped from its first ones.
    const auto is_kept = [&](size_t layer) { return stage.activations[layer] == Placement::kKeep; };
    for (size_t place = 0; place < stage.activations.size() && kept > 0; ++place) {
      const bool from_the_back = placement == Placement::kRecompute;
      const size_t layer = from_the_back ? stage.activations.size() - 1 - place : place;
      const bool was = std::find(places.begin(), places.end(), layer) != places.end();
      if (was || !is_kept(layer)) continue;
      stage.activations[layer] = placement;
      stage.first_tensors[layer] = 0;
      stage.shares[layer] = std::min(kept, kAll);
      kept -= stage.shares[layer];
    }
  }

  absl::StatusOr<bool> Take(DraftPlan change) {
    if (IsSpent() || change == best_.draft) return false;
    return TakeIfBetter(simulator_.Run(std::move(change)), best_);
  }

  DraftSimulator& simulator_;
  SimulatedDraft best_;
  const int most_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> SearchShares(DraftSimulator& simulator, SimulatedDraft start,
                                            int most_simulations) {
  return ShareSearch(simulator, std::move(start), most_simulations).Run();
}

}  // namespace siphon
