#include "planner/search/first_tensors_search.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "planner/cheapest_drops.h"
#include "planner/layer_cost.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr Placement kLeaving[] = {Placement::kRecompute, Placement::kNvmeSwap, Placement::kHostSwap,
                                  Placement::kPeerSwap};

// How many of the layers at a placement change.
enum class Share { kAll, kHalf, kOne };
constexpr Share kShares[] = {Share::kAll, Share::kHalf, Share::kOne};

size_t CountOf(Share share, size_t all) {
  return share == Share::kAll    ? all
         : share == Share::kHalf ? (all + 1) / 2
                                 : std::min<size_t>(1, all);
}

// Whether layers that are kept so far take over what the changed ones keep from now on.
enum class InPlace { kNothing, kKeptLayers };

class FirstTensorsSearch {
 public:
  FirstTensorsSearch(DraftSimulator& simulator, SimulatedDraft start, int most_simulations)
      : simulator_(simulator),
        best_(std::move(start)),
        most_(simulator.simulations() + most_simulations) {
    const PlanningProblem& problem = simulator.problem();
    const auto costs = LayerCosts(problem.profile, problem.partition);
    for (size_t stage = 0; stage < costs.size(); ++stage) {
      std::vector<std::vector<DropStep>>& steps = steps_.emplace_back();
      for (size_t layer = 0; layer < costs[stage].size(); ++layer) {
        const size_t index = static_cast<size_t>(problem.partition.stages[stage].begin) + layer;
        // All of them: with few layers in a stage what is no cheaper a byte may be just enough.
        steps.push_back(PossibleDrops(problem.profile.layers[index], costs[stage][layer].stash));
        levels_ = std::max(levels_, steps.back().size());
      }
    }
  }

  absl::StatusOr<SimulatedDraft> Run() {
    if (levels_ < 2) return std::move(best_);  // nothing is known of single tensors
    std::vector<size_t> all(steps_.size());
    for (size_t stage = 0; stage < all.size(); ++stage) all[stage] = stage;
    SIPHON_RETURN_IF_ERROR(Improve(all));
    for (const size_t stage : all) SIPHON_RETURN_IF_ERROR(Improve({stage}));
    return std::move(best_);
  }

 private:
  bool IsSpent() const { return simulator_.simulations() >= most_; }

  // As long as anything helps.
  absl::Status Improve(const std::vector<size_t>& stages) {
    for (bool better = true; better && !IsSpent();) {
      better = false;
      for (const Placement placement : kLeaving) {
        if (!Uses(best_.draft, placement)) continue;
        for (const Share share : kShares) {
          // The largest part first: all but the last tensors.
          for (size_t level = levels_ - 1; level > 0; --level) {
            for (const InPlace in_place : {InPlace::kKeptLayers, InPlace::kNothing}) {
              SIPHON_ASSIGN_OR_RETURN(const bool taken,
                                      Take(Changed(stages, placement, share, level, in_place)));
              better |= taken;
            }
          }
        }
      }
    }
    return absl::OkStatus();
  }

  DraftPlan Changed(const std::vector<size_t>& stages, Placement placement, Share share,
                    size_t level, InPlace in_place) const {
    DraftPlan changed = best_.draft;
    for (const size_t stage : stages) {
      ChangeStage(placement, share, level, in_place, steps_[stage], changed.stages[stage]);
    }
    return changed;
  }

  // Of a layer whose steps are fewer, all its tensors go.
  static bool HasLevel(const std::vector<DropStep>& steps, size_t level) {
    return level < steps.size();
  }

  static Bytes BytesOf(const std::vector<DropStep>& steps, int first_tensors) {
    for (const DropStep& step : steps) {
      if (step.first_tensors == first_tensors) return step.bytes;
    }
    return Bytes(0);
  }

  static void ChangeStage(Placement placement, Share share, size_t level, InPlace in_place,
                          const std::vector<std::vector<DropStep>>& steps, StageDraft& stage) {
    std::vector<size_t> layers;
    for (size_t layer = 0; layer < stage.activations.size(); ++layer) {
      if (stage.activations[layer] == placement && HasLevel(steps[layer], level)) {
        layers.push_back(layer);
      }
    }
    // What swaps leave is wanted back last at the stage's first layers, and what is computed again
    // goes from its last ones, so the change is where they meet.
    if (placement != Placement::kRecompute) std::reverse(layers.begin(), layers.end());
    Bytes kept;
    layers.resize(CountOf(share, layers.size()));
    for (const size_t layer : layers) {
      const DropStep& step = steps[layer][level - 1];
      kept += BytesOf(steps[layer], stage.first_tensors[layer]) - step.bytes;
      stage.first_tensors[layer] = step.first_tensors;
    }
    if (in_place == InPlace::kNothing) return;
    for (size_t layer = 0; layer < stage.activations.size() && kept > Bytes(0); ++layer) {
      if (stage.activations[layer] != Placement::kKeep || !HasLevel(steps[layer], level)) continue;
      stage.activations[layer] = placement;
      stage.first_tensors[layer] = steps[layer][level - 1].first_tensors;
      kept -= steps[layer][level - 1].bytes;
    }
  }

  absl::StatusOr<bool> Take(DraftPlan change) {
    if (IsSpent() || change == best_.draft) return false;
    return TakeIfBetter(simulator_.Run(std::move(change)), best_);
  }

  DraftSimulator& simulator_;
  SimulatedDraft best_;
  const int most_;
  size_t levels_ = 0;
  std::vector<std::vector<std::vector<DropStep>>> steps_;  // [stage][layer]: PossibleDrops
};

}  // namespace

absl::StatusOr<SimulatedDraft> SearchFirstTensors(DraftSimulator& simulator, SimulatedDraft start,
                                                  int most_simulations) {
  return FirstTensorsSearch(simulator, std::move(start), most_simulations).Run();
}

}  // namespace siphon
