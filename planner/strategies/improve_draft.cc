#include "planner/strategies/improve_draft.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/status.h"
#include "planner/strategies/draft_changes.h"

namespace siphon {
namespace {

// What saving memory costs the worker in this step.
Nanos CostOf(const SimulatedStep& step, int worker) {
  Nanos cost = step.exposed_waits[worker][static_cast<size_t>(WaitCause::kSwap)];
  for (const Interval& interval : step.workers[worker]) {
    const bool again =
        interval.kind == IntervalKind::kBusy && interval.action.kind == ActionKind::kRecompute;
    if (again) cost += interval.end - interval.begin;
  }
  return cost;
}

class Improver {
 public:
  Improver(DraftSimulator& simulator, SimulatedDraft start, int most_simulations)
      : simulator_(simulator), best_(std::move(start)), most_simulations_(most_simulations) {}

  absl::StatusOr<SimulatedDraft> Run() {
    bool improved = true;
    while (improved) {
      improved = false;
      for (const WorkerId worker : WorkersByCost()) {
        SIPHON_ASSIGN_OR_RETURN(improved, ImproveWorker(worker));
        if (improved) break;
      }
      if (improved || !Uses(best_.draft, Placement::kPeerSwap)) continue;
      SIPHON_ASSIGN_OR_RETURN(improved, TakeFirst(ExchangesOf(simulator_.problem(), best_.draft)));
    }
    return std::move(best_);
  }

 private:
  std::vector<WorkerId> WorkersByCost() const {
    std::vector<std::pair<Nanos, int>> costs;
    for (int worker = 0; worker < WorkerCount(simulator_.problem().schedule); ++worker) {
      const Nanos cost = CostOf(best_.simulated, worker);
      if (cost > Nanos(0) || best_.excess[worker] > Bytes(0)) {
        costs.emplace_back(Nanos(0) - cost, worker);
      }
    }
    std::sort(costs.begin(), costs.end());
    std::vector<WorkerId> workers;
    for (const auto& [cost, worker] : costs) workers.emplace_back(worker);
    return workers;
  }

  absl::StatusOr<bool> ImproveWorker(WorkerId worker) {
    const PlanningProblem& problem = simulator_.problem();
    SIPHON_ASSIGN_OR_RETURN(const bool changed, TakeFirst(ChangesOf(problem, best_.draft, worker)));
    if (changed) return true;
    return TakeFirst(ChangesWithRoom(problem, best_.draft, worker));
  }

  // The first change that is better than what there is.
  absl::StatusOr<bool> TakeFirst(const std::vector<DraftPlan>& changes) {
    for (const DraftPlan& change : changes) {
      if (simulator_.simulations() >= most_simulations_) return false;
      absl::StatusOr<SimulatedDraft> tried = simulator_.Run(change);
      if (absl::IsResourceExhausted(tried.status())) continue;
      if (!tried.ok()) return tried.status();
      if (tried->score >= best_.score) continue;
      best_ = *std::move(tried);
      return true;
    }
    return false;
  }

  DraftSimulator& simulator_;
  SimulatedDraft best_;
  const int most_simulations_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> ImproveDraft(DraftSimulator& simulator, SimulatedDraft start,
                                            int most_simulations) {
  return Improver(simulator, std::move(start), most_simulations).Run();
}

}  // namespace siphon
