#include "planner/search/uniform_starts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"

namespace siphon {
namespace {

// Stages of more layers take several at a time.
constexpr int kMostSteps = 8;

constexpr SwapTiming kTimings[] = {
    {.forwards_to_leave = 2, .actions_to_come_back = 2, .actions_before_step = 2},
    {.forwards_to_leave = 0, .actions_to_come_back = 0, .groups_ahead = 0}};

class UniformDrafts {
 public:
  UniformDrafts(const PlanningProblem& problem, const DraftPlan& kept) : kept_(kept) {
    for (const StageDraft& stage : kept.stages) {
      most_ = std::max(most_, static_cast<int>(stage.activations.size()));
    }
    if (!ReachesHost(problem, kept.mapping)) return;
    state_.resize(kept.stages.size());
    for (const auto& moves : OptimizerStateMoves(problem, Placement::kHostSwap)) {
      for (const DraftMove& move : moves) state_[move.stage] = true;
    }
    moves_state_ = std::find(state_.begin(), state_.end(), true) != state_.end();
  }

  int most() const { return most_; }
  bool moves_state() const { return moves_state_; }

  // Numbers of layers of each stage.
  DraftPlan With(int on_host, int recomputed, const SwapTiming& timing) const {
    DraftPlan draft = kept_;
    for (size_t index = 0; index < draft.stages.size(); ++index) {
      StageDraft& stage = draft.stages[index];
      stage.timing = timing;
      SetLast(recomputed, Placement::kRecompute, stage.activations);
      if (moves_state_ && state_[index]) {
        SetLast(on_host, Placement::kHostSwap, stage.optimizer_state);
      }
    }
    return draft;
  }

 private:
  static void SetLast(int count, Placement to, std::vector<Placement>& layers) {
    const auto last = std::min<std::ptrdiff_t>(count, std::ssize(layers));
    std::fill(layers.end() - last, layers.end(), to);
  }

  const DraftPlan& kept_;
  int most_ = 0;  // layers of a stage
  bool moves_state_ = false;
  std::vector<bool> state_;  // [stage]: may be away
};

}  // namespace

absl::StatusOr<SimulatedDraft> BestUniformStart(DraftSimulator& simulator,
                                                const SimulatedDraft& kept) {
  const UniformDrafts drafts(simulator.problem(), kept.draft);
  const int step = (drafts.most() + kMostSteps - 1) / kMostSteps;
  const int steps = (drafts.most() + step - 1) / step;
  absl::StatusOr<SimulatedDraft> best = absl::ResourceExhaustedError("no uniform draft was tried");
  for (const SwapTiming& timing : kTimings) {
    // The less state is on the host, the more layers are computed again.
    int recomputed = 0;
    for (int on_host = drafts.moves_state() ? steps : 0; on_host >= 0; --on_host) {
      bool fits = false;
      for (; recomputed <= steps && !fits; recomputed += fits ? 0 : 1) {
        auto tried = simulator.Run(drafts.With(on_host * step, recomputed * step, timing));
        fits = tried.ok() && Fits(*tried);
        best = Better(std::move(best), std::move(tried));
        if (!best.ok() && !absl::IsResourceExhausted(best.status())) return best;
      }
      if (!fits) break;
    }
  }
  return best;
}

}  // namespace siphon
