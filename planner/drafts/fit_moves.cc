#include "planner/drafts/fit_moves.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/search_effort.h"
#include "planner/lowering/settle_plan.h"
#include "planner/simulator/simulate.h"
#include "planner/status.h"

namespace siphon {
namespace {

class MoveFitter {
 public:
  MoveFitter(DraftSimulator& simulator, const DraftPlan& draft, const MoveLists& moves,
             std::vector<int>& near)
      : simulator_(simulator), draft_(draft), moves_(moves), near_(near) {}

  absl::StatusOr<SimulatedDraft> Fit() {
    // Workers take between low and high moves; with high they fit, with low not.
    std::vector<int> low(moves_.size(), -1);
    std::vector<int> high(moves_.size(), 0);
    SIPHON_ASSIGN_OR_RETURN(SimulatedDraft best, Run(high));
    if (Fits(best)) return best;
    for (size_t worker = 0; worker < moves_.size(); ++worker) {
      if (!simulator_.IsFull(best, worker)) continue;
      low[worker] = 0;
      high[worker] = static_cast<int>(moves_[worker].size());
    }
    // Where it looks near, that all moves are enough shows as soon as some of them are, or at the
    // end.
    const bool looks_near = IsLarge(simulator_.problem()) && near_.size() == moves_.size();
    if (!looks_near) {
      SIPHON_ASSIGN_OR_RETURN(best, Run(high));
      for (size_t worker = 0; worker < moves_.size(); ++worker) {
        if (high[worker] > 0 && simulator_.IsFull(best, worker)) return best;
      }
    }
    for (int round = 0;; ++round) {
      std::vector<int> middle = high;
      bool narrows = false;
      for (size_t worker = 0; worker < moves_.size(); ++worker) {
        if (high[worker] - low[worker] < 2) continue;
        middle[worker] = looks_near && round < kRoundsNear
                             ? std::clamp(near_[worker], low[worker] + 1, high[worker] - 1)
                             : (low[worker] + high[worker]) / 2;
        narrows = true;
      }
      if (!narrows) break;
      SIPHON_ASSIGN_OR_RETURN(SimulatedDraft tried, Run(middle));
      for (size_t worker = 0; worker < moves_.size(); ++worker) {
        if (middle[worker] == high[worker]) continue;
        const bool is_full = simulator_.IsFull(tried, worker);
        (is_full ? low : high)[worker] = middle[worker];
        if (looks_near) near_[worker] = middle[worker] + (is_full ? 1 : -1);
      }
      if (tried.score < best.score || Fits(tried)) best = std::move(tried);
    }
    near_ = high;
    return Settle(std::move(high), std::move(best));
  }

 private:
  // So many as were enough for another draft, and then one more, or one less.
  static constexpr int kRoundsNear = 2;

  absl::StatusOr<SimulatedDraft> Run(const std::vector<int>& taken) {
    DraftPlan draft = draft_;
    for (size_t worker = 0; worker < moves_.size(); ++worker) {
      for (int move = 0; move < taken[worker]; ++move) Apply(moves_[worker][move], draft);
    }
    return simulator_.Run(std::move(draft));
  }

  // The workers' smallest numbers of moves were found in different company: where they do not fit
  // together, `best` is the best of what was tried.
  absl::StatusOr<SimulatedDraft> Settle(std::vector<int> taken, SimulatedDraft best) {
    constexpr int kMostSteps = 4;
    for (int step = 0; step < kMostSteps; ++step) {
      SIPHON_ASSIGN_OR_RETURN(SimulatedDraft tried, Run(taken));
      if (Fits(tried)) return tried;
      for (size_t worker = 0; worker < moves_.size(); ++worker) {
        const auto most = static_cast<int>(moves_[worker].size());
        if (simulator_.IsFull(tried, worker)) taken[worker] = std::min(most, taken[worker] + 1);
      }
      if (tried.score < best.score) best = std::move(tried);
    }
    return best;
  }

  DraftSimulator& simulator_;
  const DraftPlan& draft_;
  const MoveLists& moves_;
  std::vector<int>& near_;
};

// With a host and drives that nothing fills.
PlanningProblem WithRoomBehindDevices(PlanningProblem problem) {
  problem.topology.host_memory = Bytes(0);
  for (NvmeDrive& drive : problem.topology.drives) drive.capacity = Bytes(0);
  return problem;
}

}  // namespace

absl::StatusOr<SimulatedDraft> FitMoves(DraftSimulator& simulator, const DraftPlan& draft,
                                        const MoveLists& moves, std::vector<int>& near) {
  absl::StatusOr<SimulatedDraft> fitted = MoveFitter(simulator, draft, moves, near).Fit();
  if (!absl::IsResourceExhausted(fitted.status())) return fitted;
  // All moves at once are too much for the host or the drives; as few as needed may not be.
  const PlanningProblem roomy = WithRoomBehindDevices(simulator.problem());
  DraftSimulator elsewhere(roomy);
  elsewhere.LendBy(simulator.lending());
  const absl::StatusOr<SimulatedDraft> least = MoveFitter(elsewhere, draft, moves, near).Fit();
  if (!least.ok() || !Fits(*least)) return fitted;
  return simulator.Run(least->draft);
}

absl::StatusOr<SimulatedDraft> FitMoves(DraftSimulator& simulator, const DraftPlan& draft,
                                        const MoveLists& moves) {
  std::vector<int> near;
  return FitMoves(simulator, draft, moves, near);
}

absl::StatusOr<SimulatedDraft> Better(absl::StatusOr<SimulatedDraft> a,
                                      absl::StatusOr<SimulatedDraft> b) {
  for (absl::StatusOr<SimulatedDraft>* one : {&a, &b}) {
    if (!one->ok() && !absl::IsResourceExhausted(one->status())) return std::move(*one);
  }
  if (!a.ok()) return b;
  if (!b.ok()) return a;
  return b->score < a->score ? std::move(b) : std::move(a);
}

absl::StatusOr<PlannedStep> PlannedOf(const PlanningProblem& problem, SimulatedDraft simulated,
                                      absl::string_view strategy) {
  if (!Fits(simulated)) {
    const auto most = std::max_element(simulated.excess.begin(), simulated.excess.end());
    const auto worker = static_cast<int>(most - simulated.excess.begin());
    const Bytes capacity = problem.capacity[worker];
    const auto [needed, has] = FormatApart(capacity + *most, capacity);
    // Of a search, which may have missed a plan that needs less.
    const absl::string_view plan = strategy == "auto" ? "the nearest plan of " : "";
    return absl::ResourceExhaustedError(absl::StrCat("worker ", worker, " needs ", needed,
                                                     " at its fullest under ", plan, strategy,
                                                     ", its capacity is ", has));
  }
  SettlePlan(simulated.schedule, problem.partition, simulated.memory);
  SIPHON_ASSIGN_OR_RETURN(SimulatedStep step,
                          Simulate(SimulationOf(problem, simulated.draft.mapping, simulated.memory,
                                                simulated.schedule)));
  return PlannedStep{.memory = std::move(simulated.memory),
                     .mapping = std::move(simulated.draft.mapping),
                     .schedule = std::move(simulated.schedule),
                     .simulated = std::move(step)};
}

}  // namespace siphon
