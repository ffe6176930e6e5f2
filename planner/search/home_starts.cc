#include "planner/search/home_starts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/host_reach.h"
#include "planner/drafts/move_lists.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What all stages do alike.
enum class Alike { kState, kRecompute };

// How much, of each stage's layers.
struct HomeShares {
  int quarters = 0;         // of the kind that is alike
  int eighths_on_host = 0;  // of its optimizer state steps there
};
constexpr int kEighthsOnHost[] = {0, 1, 2, 4, 8};

// When; of forwards and microbatches of a worker.
struct HomePace {
  int quarters_to_leave = 0;  // of its forwards
  int actions_to_come_home = 0;
  int made_ahead = LowerMemoryOptions::kInBackward;
};
// One that takes little memory and one that hides much.
constexpr HomePace kRoughPaces[] = {{1, 2}, {4, 6, 0}};
constexpr int kQuartersToLeave[] = {1, 2, 4};
constexpr int kActionsToComeHome[] = {2, 6, 12};
constexpr int kMadeAhead[] = {LowerMemoryOptions::kInBackward, 0, 1};
// So many of the shares are tried at all paces.
constexpr size_t kMostShares = 3;

int PartOf(int layers, int parts, int of) { return (layers * parts + of / 2) / of; }

class HomeStarter {
 public:
  HomeStarter(DraftSimulator& simulator, const DeviceMapping& mapping, Alike alike,
              int most_simulations)
      : simulator_(simulator),
        problem_(simulator.problem()),
        alike_(alike),
        most_(most_simulations),
        hosts_(HostMayStep(problem_, mapping)),
        state_(OptimizerStateMoves(problem_, Placement::kHostSwap)),
        again_(ActivationMoves(problem_, Placement::kRecompute, LayerOrder::kLastLayersFirst)),
        kept_(KeepingDraft(problem_)) {
    kept_.mapping = mapping;
  }

  absl::StatusOr<std::optional<SimulatedDraft>> Run() {
    std::vector<Tried> tried;
    for (int quarters = 4; quarters > 0; --quarters) {
      for (const int eighths : kEighthsOnHost) {
        if (eighths > 0 && !hosts_) continue;
        const HomeShares shares{quarters, eighths};
        std::optional<SimulatedDraft> best;
        for (const HomePace& pace : kRoughPaces) SIPHON_RETURN_IF_ERROR(Try(shares, pace, best));
        if (best) tried.push_back({shares, *std::move(best)});
      }
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const Tried& a, const Tried& b) { return a.best.score < b.best.score; });
    std::optional<SimulatedDraft> best;
    for (size_t place = 0; place < std::min(kMostShares, tried.size()); ++place) {
      if (place == 0) best = std::move(tried[place].best);
      SIPHON_RETURN_IF_ERROR(TryAllPaces(tried[place].shares, best));
    }
    return best;
  }

 private:
  struct Tried {
    HomeShares shares;
    SimulatedDraft best;
  };

  absl::Status TryAllPaces(const HomeShares& shares, std::optional<SimulatedDraft>& best) {
    for (const int quarters : kQuartersToLeave) {
      for (const int actions : kActionsToComeHome) {
        for (const int ahead : kMadeAhead) {
          SIPHON_RETURN_IF_ERROR(Try(shares, {quarters, actions, ahead}, best));
        }
      }
    }
    return absl::OkStatus();
  }

  // Puts the draft into the place of `best` where it fits and is faster.
  absl::Status Try(const HomeShares& shares, const HomePace& pace,
                   std::optional<SimulatedDraft>& best) {
    if (simulator_.simulations() >= most_) return absl::OkStatus();
    absl::StatusOr<SimulatedDraft> tried =
        FitMoves(simulator_, DraftOf(shares, pace), alike_ == Alike::kState ? again_ : state_);
    if (absl::IsResourceExhausted(tried.status())) return absl::OkStatus();
    if (!tried.ok()) return tried.status();
    if (Fits(*tried) && (!best || tried->score < best->score)) best = *std::move(tried);
    return absl::OkStatus();
  }

  DraftPlan DraftOf(const HomeShares& shares, const HomePace& pace) const {
    DraftPlan draft = kept_;
    for (size_t worker = 0; worker < state_.size(); ++worker) {
      const std::vector<StageId> stages =
          StagesOf(problem_.schedule, WorkerId(static_cast<int>(worker)));
      const int forwards = problem_.schedule.microbatches * static_cast<int>(stages.size());
      for (const StageId stage : stages) {
        SetStage(pace, forwards, draft.stages[static_cast<size_t>(stage.value)]);
      }
      const bool alike_state = alike_ == Alike::kState;
      for (const DraftMove& move : alike_state ? state_[worker] : again_[worker]) {
        const auto layers =
            static_cast<int>(draft.stages[static_cast<size_t>(move.stage)].activations.size());
        if (move.layer >= layers - PartOf(layers, shares.quarters, 4)) Apply(move, draft);
      }
      if (shares.eighths_on_host == 0) continue;
      for (const DraftMove& move : state_[worker]) {
        StepSomeOnHost(shares, draft.stages[static_cast<size_t>(move.stage)]);
      }
    }
    return draft;
  }

  static void SetStage(const HomePace& pace, int forwards, StageDraft& stage) {
    stage.timing = {.forwards_to_leave = 0,
                    .actions_to_come_back = 0,
                    .groups_away_between_steps = 0,
                    .forwards_to_leave_home = std::max(1, forwards * pace.quarters_to_leave / 4),
                    .actions_to_come_home = pace.actions_to_come_home};
    stage.direct = DirectBackward::kDrop;
    if (pace.made_ahead == LowerMemoryOptions::kInBackward) return;
    stage.layers_made_early = static_cast<int>(stage.activations.size());
    stage.actions_made_early = pace.made_ahead;
  }

  static void StepSomeOnHost(const HomeShares& shares, StageDraft& stage) {
    const auto layers = static_cast<int>(stage.optimizer_state.size());
    stage.timing.groups_away_between_steps = PartOf(layers, shares.eighths_on_host, 8);
    if (stage.timing.groups_away_between_steps == 0) return;
    stage.update = UpdatePlace::kHost;
    stage.timing.home_beside_host = true;
  }

  DraftSimulator& simulator_;
  const PlanningProblem& problem_;
  const Alike alike_;
  const int most_;
  const bool hosts_;
  const MoveLists state_;
  const MoveLists again_;
  DraftPlan kept_;
};

}  // namespace

absl::StatusOr<std::vector<SimulatedDraft>> HomeStarts(DraftSimulator& simulator,
                                                       const DeviceMapping& mapping,
                                                       int simulations) {
  std::vector<SimulatedDraft> starts;
  const PlanningProblem& problem = simulator.problem();
  if (!ReachesHost(problem, mapping)) return starts;
  if (!AnyMove(OptimizerStateMoves(problem, Placement::kHostSwap))) return starts;
  for (const Alike alike : {Alike::kState, Alike::kRecompute}) {
    const int most = simulator.simulations() + simulations / 2;
    SIPHON_ASSIGN_OR_RETURN(std::optional<SimulatedDraft> start,
                            HomeStarter(simulator, mapping, alike, most).Run());
    if (start) starts.push_back(*std::move(start));
  }
  return starts;
}

}  // namespace siphon
