#include "planner/step_grid.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/schedule_index.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool MakesInputGradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// A number for each (stage, microbatch).
class CellTable {
 public:
  CellTable(const Schedule& schedule, int initial)
      : microbatches_(static_cast<size_t>(schedule.microbatches)),
        values_(schedule.worker_of_stage.size() * microbatches_, initial) {}
  int& At(int stage, MicrobatchId microbatch) {
    return values_[static_cast<size_t>(stage) * microbatches_ +
                   static_cast<size_t>(microbatch.value)];
  }

 private:
  size_t microbatches_;
  std::vector<int> values_;
};

// How far each worker is in its program.
class Places {
 public:
  explicit Places(const Schedule& schedule)
      : schedule_(schedule), next_(schedule.programs.size(), 0) {}

  bool AtEnd(size_t worker) const { return next_[worker] >= schedule_.programs[worker].size(); }
  const Action& Next(size_t worker) const { return schedule_.programs[worker][next_[worker]]; }
  void Advance(size_t worker) { ++next_[worker]; }

  // OK when all are at their end.
  absl::Status Finished() const {
    for (size_t worker = 0; worker < next_.size(); ++worker) {
      if (AtEnd(worker)) continue;
      return ScheduleError(
          schedule_, {static_cast<int>(worker), static_cast<int>(next_[worker])},
          absl::StrCat("worker ", worker, " can never run ", ToString(Next(worker)),
                       ": the workers wait for each other"));
    }
    return absl::OkStatus();
  }

 private:
  const Schedule& schedule_;
  std::vector<size_t> next_;
};

// Runs compute actions as early as possible.
class ComputeGrid {
 public:
  ComputeGrid(const Schedule& schedule, const StepCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        places_(schedule),
        free_(schedule.programs.size(), 0),
        forward_end_(schedule, kNever),
        backward_end_(schedule, kNever) {
    grid_.rows.resize(schedule.programs.size());
  }

  absl::StatusOr<StepGrid> Draw() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t worker = 0; worker < free_.size(); ++worker) {
        while (!places_.AtEnd(worker) && TakeAction(worker)) progress = true;
      }
    }
    SIPHON_RETURN_IF_ERROR(places_.Finished());
    grid_.steps = *std::max_element(free_.begin(), free_.end());
    return std::move(grid_);
  }

 private:
  static constexpr int kNever = -1;

  int CostOf(ActionKind kind) const {
    switch (kind) {
      case ActionKind::kForward:
        return costs_.forward;
      case ActionKind::kBackward:
        return costs_.backward_input + costs_.backward_weight;
      case ActionKind::kBackwardInput:
        return costs_.backward_input;
      case ActionKind::kBackwardWeight:
        return costs_.backward_weight;
      default:
        return 0;
    }
  }

  // When the input of the action that another stage makes is there; kNever: not yet known.
  int InputReady(const Action& action) {
    const int stage = action.stage.value;
    if (action.kind == ActionKind::kForward && stage > 0) {
      return forward_end_.At(stage - 1, action.microbatch);
    }
    if (MakesInputGradient(action.kind) && stage + 1 < StageCount(schedule_)) {
      return backward_end_.At(stage + 1, action.microbatch);
    }
    return 0;
  }

  bool TakeAction(size_t worker) {
    const Action& action = places_.Next(worker);
    const int ready = InputReady(action);
    if (ready == kNever) return false;
    const int cost = CostOf(action.kind);
    const int begin = cost > 0 ? std::max(free_[worker], ready) : free_[worker];
    const int end = begin + cost;
    if (action.kind == ActionKind::kForward) {
      forward_end_.At(action.stage.value, action.microbatch) = end;
    } else if (MakesInputGradient(action.kind)) {
      backward_end_.At(action.stage.value, action.microbatch) = end;
    }
    if (cost > 0) grid_.rows[worker].push_back({begin, end, action});
    free_[worker] = end;
    places_.Advance(worker);
    return true;
  }

  const Schedule& schedule_;
  const StepCosts costs_;
  Places places_;
  std::vector<int> free_;  // [worker]: the end of its last action so far
  CellTable forward_end_;
  CellTable backward_end_;
  StepGrid grid_;
};

// Counts every action as a step.
class LoweredGrid {
 public:
  explicit LoweredGrid(const Schedule& schedule)
      : schedule_(schedule),
        places_(schedule),
        input_there_(schedule, 0),
        gradient_there_(schedule, 0),
        output_sent_(schedule, 0),
        gradient_sent_(schedule, 0) {
    grid_.rows.resize(schedule.programs.size());
  }

  absl::StatusOr<StepGrid> Draw() {
    const size_t workers = grid_.rows.size();
    std::vector<bool> ran(workers);
    for (;; ++grid_.steps) {
      bool done = true;
      bool progress = false;
      for (size_t worker = 0; worker < workers; ++worker) {
        if (places_.AtEnd(worker)) continue;
        done = false;
        ran[worker] = TakeCell(worker);
        progress = progress || ran[worker];
      }
      if (done) return std::move(grid_);
      if (!progress) return places_.Finished();
      for (size_t worker = 0; worker < workers; ++worker) {
        if (!places_.AtEnd(worker) && !ran[worker]) TakeCell(worker);
      }
    }
  }

 private:
  bool IsReady(const Action& action) {
    const int stage = action.stage.value;
    switch (action.kind) {
      case ActionKind::kForward:
        return stage == 0 || input_there_.At(stage, action.microbatch) != 0;
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
        return stage + 1 == StageCount(schedule_) ||
               gradient_there_.At(stage, action.microbatch) != 0;
      case ActionKind::kReceiveForward:
        return stage > 0 && output_sent_.At(stage - 1, action.microbatch) != 0;
      case ActionKind::kReceiveBackward:
        return stage + 1 < StageCount(schedule_) &&
               gradient_sent_.At(stage + 1, action.microbatch) != 0;
      default:
        return true;
    }
  }

  bool OnSameWorker(int stage, int other) const {
    return other >= 0 && other < StageCount(schedule_) &&
           schedule_.worker_of_stage[stage] == schedule_.worker_of_stage[other];
  }

  void MarkDone(const Action& action) {
    const int stage = action.stage.value;
    const MicrobatchId microbatch = action.microbatch;
    if (action.kind == ActionKind::kForward && OnSameWorker(stage, stage + 1)) {
      input_there_.At(stage + 1, microbatch) = 1;
    } else if (MakesInputGradient(action.kind) && OnSameWorker(stage, stage - 1)) {
      gradient_there_.At(stage - 1, microbatch) = 1;
    } else if (action.kind == ActionKind::kReceiveForward) {
      input_there_.At(stage, microbatch) = 1;
    } else if (action.kind == ActionKind::kReceiveBackward) {
      gradient_there_.At(stage, microbatch) = 1;
    } else if (action.kind == ActionKind::kSendForward) {
      output_sent_.At(stage, microbatch) = 1;
    } else if (action.kind == ActionKind::kSendBackward) {
      gradient_sent_.At(stage, microbatch) = 1;
    }
  }

  // One action, or both of a compound cell.
  bool TakeCell(size_t worker) {
    const std::vector<Action>& program = schedule_.programs[worker];
    const auto* const first = &places_.Next(worker);
    const bool compound = first->pairing == Pairing::kWithNext && first != &program.back();
    const auto* const end = first + (compound ? 2 : 1);
    if (!std::all_of(first, end, [&](const Action& action) { return IsReady(action); }))
      return false;
    for (const auto* action = first; action != end; ++action) {
      MarkDone(*action);
      grid_.rows[worker].push_back({grid_.steps, grid_.steps + 1, *action});
      places_.Advance(worker);
    }
    return true;
  }

  const Schedule& schedule_;
  Places places_;
  CellTable input_there_;     // on the stage's worker
  CellTable gradient_there_;  // of the stage's output, likewise
  CellTable output_sent_;
  CellTable gradient_sent_;
  StepGrid grid_;
};

}  // namespace

double BubbleFraction(const StepGrid& grid) {
  if (grid.steps == 0) return 0;
  const double all = static_cast<double>(grid.rows.size()) * grid.steps;
  double idle = all;
  for (const std::vector<GridCell>& row : grid.rows) {
    for (const GridCell& cell : row) idle -= cell.end - cell.begin;
  }
  return idle / all;
}

std::vector<int> InnerIdle(const StepGrid& grid) {
  std::vector<int> idle;
  for (const std::vector<GridCell>& row : grid.rows) {
    int of_row = 0;
    for (size_t cell = 1; cell < row.size(); ++cell) of_row += row[cell].begin - row[cell - 1].end;
    idle.push_back(of_row);
  }
  return idle;
}

double InnerIdleFraction(const StepGrid& grid) {
  if (grid.steps == 0) return 0;
  double idle = 0;
  for (const int of_row : InnerIdle(grid)) idle += of_row;
  return idle / (static_cast<double>(grid.rows.size()) * grid.steps);
}

absl::StatusOr<StepGrid> DrawStepGrid(const Schedule& schedule, const StepCosts& costs) {
  SIPHON_RETURN_IF_ERROR(ScheduleIndex::Build(schedule).status());
  return ComputeGrid(schedule, costs).Draw();
}

absl::StatusOr<StepGrid> DrawLoweredGrid(const Schedule& schedule) {
  SIPHON_RETURN_IF_ERROR(ScheduleIndex::Build(schedule).status());
  return LoweredGrid(schedule).Draw();
}

absl::StatusOr<int> CountSteps(const Schedule& lowered) {
  SIPHON_ASSIGN_OR_RETURN(const StepGrid grid, DrawLoweredGrid(lowered));
  return grid.steps;
}

}  // namespace siphon
