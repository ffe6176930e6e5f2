#include "planner/search/exchange_steps.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/schedule.h"
#include "planner/search/state_home.h"
#include "planner/search/time_state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Groups that are away between steps are the host's but for those that stream; others are home.
void LetHomeBesideHost(StageDraft& stage) {
  if (stage.timing.home_beside_host && stage.update == UpdatePlace::kHost) return;
  const bool on_host = stage.update == UpdatePlace::kHost;
  stage.timing.groups_away_between_steps =
      on_host ? SwappedState(stage) : StateAwayBetweenSteps(stage);
  if (!on_host) stage.groups_streamed = StateAwayBetweenSteps(stage);
  stage.timing.home_beside_host = true;
  stage.update = UpdatePlace::kHost;
}

// What lenders or drives have is not the host's to step.
bool IsWithHostOnly(const StageDraft& stage) {
  return std::all_of(
      stage.optimizer_state.begin(), stage.optimizer_state.end(),
      [](Placement layer) { return layer == Placement::kKeep || layer == Placement::kHostSwap; });
}

bool SwapOneMore(StageDraft& stage) {
  const auto kept =
      std::find(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kKeep);
  if (kept == stage.optimizer_state.end()) return false;
  *kept = Placement::kHostSwap;
  return true;
}

// When the worker's last STEP ends.
Nanos StepsUntil(const SimulatedStep& step, WorkerId worker) {
  const WorkerTimeline& timeline = step.workers[static_cast<size_t>(worker.value)];
  return timeline.empty() ? Nanos(0) : timeline.back().end;
}

// The step's time and the mean of its workers': what is through sooner has room for more, though
// others are no sooner through.
Nanos Strain(const SimulatedStep& step) {
  Nanos strain;
  for (size_t worker = 0; worker < step.workers.size(); ++worker) {
    strain += step.step_time + StepsUntil(step, WorkerId(static_cast<int>(worker)));
  }
  return strain;
}

class StepExchange {
 public:
  StepExchange(DraftSimulator& simulator, SimulatedDraft best, int most_simulations)
      : simulator_(simulator),
        now_(best),
        best_(std::move(best)),
        most_(simulator.simulations() + most_simulations) {
    const PlanningProblem& problem = simulator.problem();
    for (const std::vector<DraftMove>& moves : UpdateMoves(problem)) {
      for (const DraftMove& move : moves) stages_.emplace_back(move.stage);
    }
  }

  absl::StatusOr<SimulatedDraft> Run() {
    bool goes_on = true;
    while (goes_on) {
      SIPHON_ASSIGN_OR_RETURN(goes_on, TryAll());
    }
    return std::move(best_);
  }

 private:
  using Stage = std::optional<StageId>;

  absl::StatusOr<bool> TryAll() {
    std::vector<StageId> late = stages_;
    std::stable_sort(late.begin(), late.end(), [this](StageId a, StageId b) {
      return StepsUntil(now_.simulated, WorkerOf(a)) > StepsUntil(now_.simulated, WorkerOf(b));
    });
    std::vector<Stage> gives(late.begin(), late.end());
    std::vector<Stage> takes(late.rbegin(), late.rend());
    gives.push_back(std::nullopt);
    takes.push_back(std::nullopt);
    for (const Stage& from : gives) {
      for (const Stage& to : takes) {
        if (simulator_.simulations() >= most_) return false;
        if (from == to) continue;
        SIPHON_ASSIGN_OR_RETURN(const bool taken, Try(from, to));
        if (taken) return true;
      }
    }
    return false;
  }

  WorkerId WorkerOf(StageId stage) const {
    return simulator_.problem().schedule.worker_of_stage[static_cast<size_t>(stage.value)];
  }

  absl::StatusOr<bool> Try(const Stage& gives, const Stage& takes) {
    DraftPlan draft = now_.draft;
    std::vector<StageId> changed;
    if (gives.has_value()) {
      if (!StepOneMoreOnHost(draft.stages[gives->value])) return false;
      changed.push_back(*gives);
    }
    if (takes.has_value()) {
      if (!StepOneLessOnHost(draft.stages[takes->value])) return false;
      changed.push_back(*takes);
    }
    absl::StatusOr<SimulatedDraft> tried = TimeStagesHome(simulator_, std::move(draft), changed);
    if (absl::IsResourceExhausted(tried.status())) return false;
    if (!tried.ok()) return tried.status();
    if (!Fits(*tried) || Strain(tried->simulated) >= Strain(now_.simulated)) return false;
    now_ = *std::move(tried);
    if (now_.score < best_.score) best_ = now_;
    return true;
  }

  DraftSimulator& simulator_;
  SimulatedDraft now_;
  SimulatedDraft best_;
  const int most_;
  std::vector<StageId> stages_;  // whose steps may be on the host
};

}  // namespace

bool StepOneMoreOnHost(StageDraft& stage) {
  if (!IsWithHostOnly(stage)) return false;
  LetHomeBesideHost(stage);
  const int away = StateAwayBetweenSteps(stage);
  if (away == SwappedState(stage) && !SwapOneMore(stage)) return false;
  stage.timing.groups_away_between_steps = away + 1;
  return true;
}

bool StepOneLessOnHost(StageDraft& stage) {
  if (!IsWithHostOnly(stage)) return false;
  LetHomeBesideHost(stage);
  const int away = StateAwayBetweenSteps(stage);
  if (away <= stage.groups_streamed) return false;
  stage.timing.groups_away_between_steps = away - 1;
  return true;
}

absl::StatusOr<SimulatedDraft> ExchangeSteps(DraftSimulator& simulator, SimulatedDraft best,
                                             int most_simulations) {
  if (!HostMayStep(simulator.problem(), best.draft.mapping)) return best;
  return StepExchange(simulator, std::move(best), most_simulations).Run();
}

}  // namespace siphon
