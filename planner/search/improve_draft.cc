#include "planner/search/improve_draft.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/search/draft_changes.h"
#include "planner/search/trade_changes.h"
#include "planner/status.h"

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

// Times that a change which takes too much memory is given more layers to compute again.
constexpr int kMostRepairs = 3;

// One layer more of each worker that is too full: the last one that is kept, or else swapped.
DraftPlan RecomputeMore(const PlanningProblem& problem, const SimulatedDraft& simulated) {
  DraftPlan draft = simulated.draft;
  for (int worker = 0; worker < WorkerCount(problem.schedule); ++worker) {
    if (simulated.excess[worker] == Bytes(0)) continue;
    const std::vector<StageId> stages = StagesOf(problem.schedule, WorkerId(worker));
    bool found = false;
    for (const Placement from :
         {Placement::kKeep, Placement::kHostSwap, Placement::kNvmeSwap, Placement::kPeerSwap}) {
      for (auto stage = stages.rbegin(); stage != stages.rend() && !found; ++stage) {
        std::vector<Placement>& layers = draft.stages[stage->value].activations;
        const auto last = std::find(layers.rbegin(), layers.rend(), from);
        found = last != layers.rend();
        if (found) *last = Placement::kRecompute;
      }
    }
  }
  return draft;
}

class Improver {
 public:
  Improver(DraftSimulator& simulator, SimulatedDraft start, int most_simulations,
           WeightSearch weights)
      : simulator_(simulator),
        best_(std::move(start)),
        most_simulations_(most_simulations),
        weights_(weights) {}

  absl::StatusOr<SimulatedDraft> Run() {
    bool improved = true;
    if (weights_ == WeightSearch::kAnywhere) SIPHON_RETURN_IF_ERROR(TradeAll().status());
    while (improved && !IsSpent()) {
      SIPHON_ASSIGN_OR_RETURN(improved, ImproveAll());
      for (const WorkerId worker : WorkersByCost()) {
        SIPHON_ASSIGN_OR_RETURN(const bool changed, ImproveWorker(worker));
        improved = improved || changed;
      }
      if (improved) continue;
      if (weights_ == WeightSearch::kAnywhere) {
        SIPHON_ASSIGN_OR_RETURN(improved, TradeAll());
        if (improved) continue;
      }
      SIPHON_ASSIGN_OR_RETURN(
          improved, TakeAll([&] { return ExchangesOf(simulator_.problem(), best_.draft); }));
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

  std::vector<StageId> StagesByCost() const {
    std::vector<StageId> stages;
    for (const WorkerId worker : WorkersByCost()) {
      for (const StageId stage : StagesOf(simulator_.problem().schedule, worker)) {
        stages.push_back(stage);
      }
    }
    return stages;
  }

  // One change of all stages: where many workers limit the step, one alone gains nothing.
  absl::StatusOr<bool> ImproveAll() {
    if (WorkersByCost().size() < 2) return false;
    const std::vector<StageId> stages = StagesByCost();
    return TakeAll([&] { return ChangesOf(simulator_.problem(), best_.draft, stages, weights_); });
  }

  // Weights that leave for activations that stay: all stages, then one worker's after another's.
  absl::StatusOr<bool> TradeAll() {
    const std::vector<StageId> all = StagesByCost();
    SIPHON_ASSIGN_OR_RETURN(bool improved,
                            TakeAll([&] { return TradesOf(simulator_, best_.draft, all); }));
    for (const WorkerId worker : WorkersByCost()) {
      const std::vector<StageId> stages = StagesOf(simulator_.problem().schedule, worker);
      if (stages.size() == all.size()) break;
      SIPHON_ASSIGN_OR_RETURN(const bool traded,
                              TakeAll([&] { return TradesOf(simulator_, best_.draft, stages); }));
      improved = improved || traded;
    }
    return improved;
  }

  absl::StatusOr<bool> ImproveWorker(WorkerId worker) {
    const PlanningProblem& problem = simulator_.problem();
    const std::vector<StageId> stages = StagesOf(problem.schedule, worker);
    SIPHON_ASSIGN_OR_RETURN(const bool changed, TakeAll([&] {
                              return ChangesOf(problem, best_.draft, stages, weights_);
                            }));
    SIPHON_ASSIGN_OR_RETURN(const bool with_room,
                            TakeAll([&] { return ChangesWithRoom(problem, best_.draft, worker); }));
    return changed || with_room;
  }

  bool IsFastButTooFull(const absl::StatusOr<SimulatedDraft>& tried) const {
    return tried.ok() && tried->score.excess > best_.score.excess &&
           tried->score.step < best_.score.step;
  }

  bool IsSpent() const { return simulator_.simulations() >= most_simulations_; }

  // Takes changes that are better than what there is, round and round, until none is: a kind of
  // change that has helped is tried again at once, and those that have not come last.
  template <typename ChangesNow>
  absl::StatusOr<bool> TakeAll(const ChangesNow& changes_now) {
    bool taken = false;
    std::vector<DraftPlan> changes = changes_now();
    for (size_t place = 0, failed = 0; failed < changes.size() && !IsSpent();) {
      SIPHON_ASSIGN_OR_RETURN(const bool better, Take(changes[place % changes.size()]));
      if (better) {
        taken = true;
        failed = 0;
        changes = changes_now();
      } else {
        ++failed;
        ++place;
      }
    }
    return taken;
  }

  // The change, if it is better than what there is.
  absl::StatusOr<bool> Take(const DraftPlan& change) {
    absl::StatusOr<SimulatedDraft> tried = simulator_.Run(change);
    for (int repair = 0; repair < kMostRepairs && IsFastButTooFull(tried); ++repair) {
      tried = simulator_.Run(RecomputeMore(simulator_.problem(), *tried));
    }
    return TakeIfBetter(std::move(tried), best_);
  }

  DraftSimulator& simulator_;
  SimulatedDraft best_;
  const int most_simulations_;
  const WeightSearch weights_;
};

}  // namespace

absl::StatusOr<SimulatedDraft> ImproveDraft(DraftSimulator& simulator, SimulatedDraft start,
                                            int most_simulations, WeightSearch weights) {
  return Improver(simulator, std::move(start), most_simulations, weights).Run();
}

}  // namespace siphon
