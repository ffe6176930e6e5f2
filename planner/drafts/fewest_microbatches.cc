#include "planner/drafts/fewest_microbatches.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kWhole = LowerMemoryOptions::kShares;

// Shares of layers, from the first one of each worker's list on.
class ShareFitter {
 public:
  ShareFitter(DraftSimulator& simulator, const DraftPlan& draft, const MoveLists& layers)
      : simulator_(simulator), draft_(draft), layers_(layers) {}

  // Workers of which none goes are left alone.
  absl::StatusOr<SimulatedDraft> Fit() {
    std::vector<int> low, high;
    for (const std::vector<DraftMove>& layers : layers_) {
      const int whole = static_cast<int>(std::count_if(
          layers.begin(), layers.end(), [this](const DraftMove& move) { return Goes(move); }));
      const int all = static_cast<int>(layers.size());
      low.push_back(kWhole * std::max(0, whole - 1));
      high.push_back(whole == 0 ? 0 : kWhole * std::min(whole + 1, all));
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
        if (!is_too_much && simulator_.IsFull(*tried, worker)) {
          low[worker] = middle[worker] + 1;
        } else {
          high[worker] = middle[worker];
        }
      }
    }
    return Run(high);
  }

 private:
  bool Goes(const DraftMove& move) const {
    return draft_.stages[move.stage].activations[move.layer] == move.to;
  }

  absl::StatusOr<SimulatedDraft> Run(const std::vector<int>& shares) {
    DraftPlan draft = draft_;
    for (size_t worker = 0; worker < layers_.size(); ++worker) {
      int left = shares[worker];
      for (const DraftMove& move : layers_[worker]) {
        StageDraft& stage = draft.stages[move.stage];
        if (left == 0 && !Goes(move)) continue;
        const int share = std::min(kWhole, left);
        stage.activations[move.layer] = share == 0 ? Placement::kKeep : move.to;
        stage.shares[move.layer] = share == 0 ? kWhole : share;
        left -= share;
      }
    }
    return simulator_.Run(std::move(draft));
  }

  DraftSimulator& simulator_;
  const DraftPlan& draft_;
  const MoveLists& layers_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> FewestMicrobatches(DraftSimulator& simulator,
                                                  absl::StatusOr<SimulatedDraft> start,
                                                  const MoveLists& moves) {
  if (!start.ok() || !Fits(*start)) return start;
  SimulatedDraft best = *std::move(start);
  const bool swaps = std::any_of(moves.begin(), moves.end(), [](const auto& of_worker) {
    return !of_worker.empty() && IsSwap(of_worker.front().to);
  });
  for (const SwapTiming::Turn turn : {SwapTiming::Turn::kLastStay, SwapTiming::Turn::kFirstStay}) {
    if (turn == SwapTiming::Turn::kFirstStay && !swaps) break;
    DraftPlan turned = best.draft;
    for (StageDraft& stage : turned.stages) stage.timing.turn = turn;
    absl::StatusOr<SimulatedDraft> fewest = ShareFitter(simulator, turned, moves).Fit();
    if (absl::IsResourceExhausted(fewest.status())) continue;
    SIPHON_RETURN_IF_ERROR(fewest.status());
    // With fewer copies in the same time there is more room for them.
    if (fewest->score <= best.score) best = *std::move(fewest);
  }
  return best;
}

}  // namespace siphon
