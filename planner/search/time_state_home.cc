#include "planner/search/time_state_home.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/drafts/fit_moves.h"
#include "planner/drafts/move_lists.h"
#include "planner/search/state_home.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Groups of a stage beyond so many share their times.
constexpr size_t kMostTimes = 4;

// Which values take less memory.
enum class Thrifty { kLow, kHigh };

class StateTimer {
 public:
  StateTimer(DraftSimulator& simulator, DraftPlan draft)
      : simulator_(simulator), problem_(simulator.problem()), draft_(std::move(draft)) {
    for (int worker = 0; worker < WorkerCount(problem_.schedule); ++worker) {
      stages_.push_back(StagesOf(problem_.schedule, WorkerId(worker)));
      ranks_ = std::max(ranks_, stages_.back().size());
      const std::vector<Action>& program = problem_.schedule.programs[worker];
      const auto actions = std::count_if(program.begin(), program.end(), [](const Action& action) {
        return IsCompute(action.kind);
      });
      actions_ = std::max(actions_, static_cast<int>(actions));
    }
    for (const StageDraft& stage : draft_.stages) {
      layers_ = std::max(layers_, stage.optimizer_state.size());
      moves_.push_back(stage.update == UpdatePlace::kDevice || stage.timing.home_beside_host);
    }
    forwards_ = problem_.schedule.microbatches * static_cast<int>(ranks_);
  }

  absl::StatusOr<SimulatedDraft> Run() {
    KeepStateHome(problem_, draft_);
    StartTimes();
    SIPHON_RETURN_IF_ERROR(Set(static_cast<int>(layers_), Thrifty::kHigh, [](StageDraft& stage) {
      return &stage.timing.groups_away_between_steps;
    }));
    return RunTimes();
  }

  absl::StatusOr<SimulatedDraft> RunIn() {
    for (size_t stage = 0; stage < draft_.stages.size(); ++stage) {
      StageDraft& draft = draft_.stages[stage];
      moves_[stage] = GroupsAway(draft) > 0;
      if (moves_[stage]) draft.state_times.in.assign(TimesOf(stage), 0);
    }
    SIPHON_RETURN_IF_ERROR(SetIn());
    return simulator_.Run(std::move(draft_));
  }

  absl::StatusOr<SimulatedDraft> RunStages(const std::vector<StageId>& stages) {
    moves_.assign(moves_.size(), false);
    for (const StageId stage : stages) moves_[stage.value] = true;
    StartTimes();
    return RunTimes();
  }

 private:
  // A worker's bisection.
  struct Search {
    int fits = 0;  // as far as is known
    int limit = 0;
    bool IsOpen() const { return fits != limit; }
    // Towards the limit, so that it is tried at last.
    int Middle() const { return fits + (limit - fits) / 2 + (limit - fits) % 2; }
  };

  // Of all that move, as thrifty as can be.
  void StartTimes() {
    for (size_t stage = 0; stage < draft_.stages.size(); ++stage) {
      StageDraft& draft = draft_.stages[stage];
      if (!moves_[stage]) continue;
      draft.timing.actions_before_step = 0;
      draft.timing.groups_ahead = 0;
      draft.state_times.gone.assign(TimesOf(stage), 1);
      draft.state_times.back.assign(TimesOf(stage), 0);
      draft.state_times.in.assign(TimesOf(stage), 0);
    }
  }

  absl::StatusOr<SimulatedDraft> RunTimes() {
    // What stays longest is what leaves last; what is back first comes before all others.
    for (size_t time = kMostTimes; time > 0; --time) {
      SIPHON_RETURN_IF_ERROR(Set(forwards_, Thrifty::kLow, [time](StageDraft& stage) {
        return EntryOf(stage.state_times.gone, time - 1);
      }));
    }
    for (size_t time = 0; time < kMostTimes; ++time) {
      SIPHON_RETURN_IF_ERROR(Set(actions_, Thrifty::kLow, [time](StageDraft& stage) {
        return EntryOf(stage.state_times.back, time);
      }));
    }
    SIPHON_RETURN_IF_ERROR(SetIn());
    return simulator_.Run(std::move(draft_));
  }

  // How many groups that are away between steps come in before the STEP, and then when each does.
  absl::Status SetIn() {
    SIPHON_RETURN_IF_ERROR(Set(static_cast<int>(layers_), Thrifty::kLow,
                               [](StageDraft& stage) { return &stage.timing.groups_ahead; }));
    for (int time = 0; time < static_cast<int>(kMostTimes); ++time) {
      SIPHON_RETURN_IF_ERROR(Set(actions_, Thrifty::kLow, [time](StageDraft& stage) {
        return time < GroupsAway(stage) ? EntryOf(stage.state_times.in, time) : nullptr;
      }));
    }
    return absl::OkStatus();
  }

  size_t TimesOf(size_t stage) const {
    const auto swapped = static_cast<size_t>(SwappedState(draft_.stages[stage]));
    return moves_[stage] ? std::min(swapped, kMostTimes) : 0;
  }

  // How many groups may be away between steps and come in for a STEP on the device, at most.
  static int GroupsAway(const StageDraft& stage) {
    if (stage.update == UpdatePlace::kHost && !stage.timing.home_beside_host) {
      return std::min(SwappedState(stage), stage.groups_streamed);
    }
    return StateAwayBetweenSteps(stage);
  }

  static int* EntryOf(std::vector<int>& times, size_t time) {
    return time < times.size() ? &times[time] : nullptr;
  }

  // Of each worker the value that takes most memory of those with which it fits, one stage of it
  // after the other.
  template <typename Value>
  absl::Status Set(int most, Thrifty thrifty, const Value& value) {
    for (size_t rank = 0; rank < ranks_; ++rank) {
      std::vector<int*> values;
      for (const std::vector<StageId>& stages : stages_) {
        const bool has =
            rank < stages.size() && TimesOf(static_cast<size_t>(stages[rank].value)) > 0;
        values.push_back(has ? value(draft_.stages[stages[rank].value]) : nullptr);
      }
      SIPHON_RETURN_IF_ERROR(SetAll(most, thrifty, values));
    }
    return absl::OkStatus();
  }

  // `values`, [worker], are of the draft.
  absl::Status SetAll(int most, Thrifty thrifty, const std::vector<int*>& values) {
    std::vector<Search> searches;
    for (const int* value : values) {
      const int now = value == nullptr ? most : *value;
      searches.push_back(thrifty == Thrifty::kLow ? Search{now, std::max(now, most)}
                                                  : Search{most, std::min(now, most)});
    }
    const auto is_open = [](const Search& search) { return search.IsOpen(); };
    while (std::any_of(searches.begin(), searches.end(), is_open)) {
      for (size_t worker = 0; worker < values.size(); ++worker) {
        if (values[worker] != nullptr) *values[worker] = searches[worker].Middle();
      }
      const absl::StatusOr<SimulatedDraft> tried = simulator_.Run(draft_);
      if (!tried.ok()) return tried.status();
      for (size_t worker = 0; worker < searches.size(); ++worker) {
        Search& search = searches[worker];
        if (!search.IsOpen()) continue;
        const int step = search.limit > search.fits ? 1 : -1;
        if (tried->excess[worker] == Bytes(0)) {
          search.fits = search.Middle();
        } else {
          search.limit = search.Middle() - step;
        }
      }
    }
    for (size_t worker = 0; worker < values.size(); ++worker) {
      if (values[worker] != nullptr) *values[worker] = searches[worker].fits;
    }
    return absl::OkStatus();
  }

  DraftSimulator& simulator_;
  const PlanningProblem& problem_;
  DraftPlan draft_;
  std::vector<std::vector<StageId>> stages_;  // [worker]
  size_t ranks_ = 0;                          // most stages of a worker
  int actions_ = 0;                           // of a worker, at most
  int forwards_ = 0;
  size_t layers_ = 0;        // of a stage, at most
  std::vector<bool> moves_;  // [stage]: whether its times are looked for
};

}  // namespace

bool IsStateTimed(const DraftPlan& draft) {
  return std::any_of(draft.stages.begin(), draft.stages.end(), [](const StageDraft& stage) {
    return !stage.state_times.gone.empty() || !stage.state_times.in.empty();
  });
}

absl::StatusOr<SimulatedDraft> TimeStateHome(DraftSimulator& simulator, DraftPlan draft) {
  return StateTimer(simulator, std::move(draft)).Run();
}

absl::StatusOr<SimulatedDraft> TimeStagesHome(DraftSimulator& simulator, DraftPlan draft,
                                              const std::vector<StageId>& stages) {
  return StateTimer(simulator, std::move(draft)).RunStages(stages);
}

absl::StatusOr<SimulatedDraft> TimeStateIn(DraftSimulator& simulator, DraftPlan draft) {
  return StateTimer(simulator, std::move(draft)).RunIn();
}

absl::StatusOr<SimulatedDraft> BestWithTimedState(DraftSimulator& simulator,
                                                  const SimulatedDraft& best,
                                                  const SimulatedDraft& kept) {
  const PlanningProblem& problem = simulator.problem();
  absl::StatusOr<SimulatedDraft> timed = absl::ResourceExhaustedError("nothing tried");
  const auto attempt = [&](const absl::StatusOr<SimulatedDraft>& start) {
    if (!start.ok()) return;
    timed = Better(std::move(timed), TimeStateHome(simulator, start->draft));
  };
  attempt(best);
  DraftPlan draft = kept.draft;
  draft.mapping = best.draft.mapping;
  KeepStateHome(problem, draft);
  for (StageDraft& stage : draft.stages) {
    stage.timing.forwards_to_leave_home = 1;
    stage.timing.actions_to_come_home = 0;
    stage.timing.groups_ahead = 0;
    stage.direct = DirectBackward::kDrop;
  }
  attempt(FitMoves(
      simulator, draft,
      Chain(OptimizerStateMoves(problem, Placement::kHostSwap),
            ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst))));
  for (StageDraft& stage : draft.stages) {
    std::fill(stage.optimizer_state.begin(), stage.optimizer_state.end(), Placement::kHostSwap);
  }
  attempt(FitMoves(simulator, draft,
                   ActivationMoves(problem, Placement::kRecompute, LayerOrder::kLastLayersFirst)));
  return timed;
}

}  // namespace siphon
