#include "planner/strategies/swap_as_needed.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/status.h"
#include "planner/strategies/move_lists.h"

namespace siphon {
namespace {

constexpr int kWhole = LowerMemoryOptions::kShares;

// Shares of layers, from the first one of each worker's list on.
class ShareFitter {
 public:
  ShareFitter(DraftSimulator& simulator, const DraftPlan& draft, Placement place)
      : simulator_(simulator),
        draft_(draft),
        layers_(ActivationMoves(simulator.problem(), place, LayerOrder::kFirstLayersFirst)) {}

  // Workers that swap no activations are left alone.
  absl::StatusOr<SimulatedDraft> Fit() {
    std::vector<int> low, high;
    for (const std::vector<DraftMove>& layers : layers_) {
      const int swapped = static_cast<int>(std::count_if(
          layers.begin(), layers.end(), [this](const DraftMove& move) { return IsSwapped(move); }));
      const int all = static_cast<int>(layers.size());
      low.push_back(kWhole * std::max(0, swapped - 1));
      high.push_back(swapped == 0 ? 0 : kWhole * std::min(swapped + 1, all));
    }
    while (low != high) {
      std::vector<int> middle;
      for (size_t worker = 0; worker < low.size(); ++worker) {
        middle.push_back((low[worker] + high[worker]) / 2);
      }
      const absl::StatusOr<SimulatedDraft> tried = Run(middle);
      // What the host has no room for is more than is needed.
      const bool is_too_much = absl::IsResourceExhausted(tried.status());
      if (!is_too_much) SIPHON_RETURN_IF_ERROR(tried.status());
      for (size_t worker = 0; worker < low.size(); ++worker) {
        if (low[worker] == high[worker]) continue;
        if (!is_too_much && IsFull(*tried, worker)) {
          low[worker] = middle[worker] + 1;
        } else {
          high[worker] = middle[worker];
        }
      }
    }
    return Run(high);
  }

 private:
  bool IsSwapped(const DraftMove& move) const {
    return draft_.stages[move.stage].activations[move.layer] == move.to;
  }

  absl::StatusOr<SimulatedDraft> Run(const std::vector<int>& shares) {
    DraftPlan draft = draft_;
    for (size_t worker = 0; worker < layers_.size(); ++worker) {
      int left = shares[worker];
      for (const DraftMove& move : layers_[worker]) {
        StageDraft& stage = draft.stages[move.stage];
        if (left == 0 && !IsSwapped(move)) continue;
        const int share = std::min(kWhole, left);
        stage.activations[move.layer] = share == 0 ? Placement::kKeep : move.to;
        stage.shares[move.layer] = share == 0 ? kWhole : share;
        left -= share;
      }
    }
    return simulator_.Run(std::move(draft));
  }

  bool IsFull(const SimulatedDraft& simulated, size_t worker) const {
    const Bytes capacity = simulator_.CapacityOf(static_cast<int>(worker));
    return capacity > Bytes(0) && simulated.peaks[worker] > capacity;
  }

  DraftSimulator& simulator_;
  const DraftPlan& draft_;
  const MoveLists layers_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> SwapAsNeeded(DraftSimulator& simulator,
                                            absl::StatusOr<SimulatedDraft> start, Placement place) {
  if (!start.ok() || !Fits(*start)) return start;
  SimulatedDraft best = *std::move(start);
  for (const SwapTiming::Turn turn : {SwapTiming::Turn::kLastStay, SwapTiming::Turn::kFirstStay}) {
    DraftPlan turned = best.draft;
    for (StageDraft& stage : turned.stages) stage.timing.turn = turn;
    absl::StatusOr<SimulatedDraft> fewest = ShareFitter(simulator, turned, place).Fit();
    if (absl::IsResourceExhausted(fewest.status())) continue;
    SIPHON_RETURN_IF_ERROR(fewest.status());
    // With fewer copies in the same time there is more room for them.
    if (fewest->score <= best.score) best = *std::move(fewest);
  }
  return best;
}

}  // namespace siphon
