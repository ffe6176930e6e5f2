#include "planner/check_step_end.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

// What has been seen of one stage, from the beginning of its worker's program.
struct StageProgress {
  int last_backward = -1;  // places; -1: none yet
  int reduce_gradient = -1;
  int step = -1;
  int last_update = -1;
};

bool EndsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

class StepEndChecker {
 public:
  StepEndChecker(const Schedule& schedule, const ScheduleIndex& index)
      : schedule_(schedule), index_(index), stages_(schedule.worker_of_stage.size()) {}

  absl::Status Check() {
    bool any_norm = false;
    for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
      SIPHON_RETURN_IF_ERROR(CheckWorker(worker));
      any_norm |= norm_ >= 0;
    }
    SIPHON_RETURN_IF_ERROR(CheckUpdatesComplete());
    return any_norm ? CheckCoverage() : absl::OkStatus();
  }

 private:
  absl::Status Bad(int worker, int place, absl::string_view sentence) const {
    return ScheduleError(schedule_, {worker, place},
                         absl::StrCat("worker ", worker, " ", sentence));
  }
  const Action& At(int worker, int place) const { return schedule_.programs[worker][place]; }
  StageId FirstStage(int worker) const { return StagesOf(schedule_, WorkerId(worker)).front(); }

  absl::Status CheckWorker(int worker) {
    norm_ = -1;
    const int length = static_cast<int>(schedule_.programs[worker].size());
    for (int place = 0; place < length; ++place) {
      SIPHON_RETURN_IF_ERROR(CheckAction(worker, place));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAction(int worker, int place) {
    const Action& action = At(worker, place);
    StageProgress& stage = stages_[action.stage.value];
    const auto behind = [&](int earlier, absl::string_view why) {
      return Bad(worker, place,
                 absl::StrCat("has ", ToString(action), " behind ", ToString(At(worker, earlier)),
                              ", ", why));
    };
    if (HasMicrobatch(action)) {
      const int ended = std::max({norm_, stage.reduce_gradient, stage.step});
      if (ended >= 0) return behind(ended, "which ends the step");
    }
    switch (action.kind) {
      case ActionKind::kReduceGradient:
        if (norm_ >= 0) return behind(norm_, "which needs it");
        if (stage.step >= 0) return behind(stage.step, "which needs it");
        stage.reduce_gradient = place;
        break;
      case ActionKind::kReduceNorm:
        if (action.stage != FirstStage(worker)) {
          return Bad(worker, place,
                     absl::StrCat("has ", ToString(action),
                                  ", but the norm is named after its first stage ",
                                  FirstStage(worker).value));
        }
        norm_ = place;
        break;
      case ActionKind::kStep:
        if (stage.last_update >= 0) {
          return behind(stage.last_update, "but a stage is updated in one way only");
        }
        stage.step = place;
        break;
      case ActionKind::kUpdate:
        return CheckUpdate(worker, place, stage);
      default:
        if (EndsBackward(action.kind)) stage.last_backward = place;
    }
    return absl::OkStatus();
  }

  absl::Status CheckUpdate(int worker, int place, StageProgress& stage) {
    const Action& update = At(worker, place);
    const Action whole{update.stage, ActionKind::kBackward, update.microbatch};
    const Action split{update.stage, ActionKind::kBackwardWeight, update.microbatch};
    const Action& backward = index_.Has(split) ? split : whole;
    if (index_.Find(backward) >= place) {
      return Bad(worker, place,
                 absl::StrCat("has ", ToString(update), " before ", ToString(backward),
                              ", which it needs"));
    }
    if (stage.last_update >= 0 && At(worker, stage.last_update).microbatch >= update.microbatch) {
      return Bad(worker, place,
                 absl::StrCat("has ", ToString(update), " behind ",
                              ToString(At(worker, stage.last_update)),
                              ", but updates go through the microbatches in ascending order"));
    }
    stage.last_update = place;
    return absl::OkStatus();
  }

  absl::Status CheckUpdatesComplete() const {
    for (int stage = 0; stage < StageCount(schedule_); ++stage) {
      const StageProgress& seen = stages_[stage];
      if (seen.last_update < 0 || seen.last_update > seen.last_backward) continue;
      const int worker = schedule_.worker_of_stage[stage].value;
      return Bad(worker, seen.last_backward,
                 absl::StrCat("has ", ToString(At(worker, seen.last_backward)),
                              ", whose gradients no UPDATE uses"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckCoverage() const {
    for (int stage = 0; stage < StageCount(schedule_); ++stage) {
      if (stages_[stage].step >= 0 || stages_[stage].last_update >= 0) continue;
      SIPHON_RETURN_IF_ERROR(
          Missing({StageId(stage), ActionKind::kStep, {}}, "every stage takes the optimizer step"));
    }
    for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
      const Action norm{FirstStage(worker), ActionKind::kReduceNorm, {}};
      if (index_.Has(norm)) continue;
      SIPHON_RETURN_IF_ERROR(Missing(norm, "every worker has its part in the norm"));
    }
    return absl::OkStatus();
  }

  absl::Status Missing(const Action& action, absl::string_view why) const {
    const int worker = schedule_.worker_of_stage[action.stage.value].value;
    const int end = static_cast<int>(schedule_.programs[worker].size());
    return Bad(worker, end, absl::StrCat("lacks ", ToString(action), ": ", why));
  }

  const Schedule& schedule_;
  const ScheduleIndex& index_;
  std::vector<StageProgress> stages_;
  int norm_ = -1;  // place of the REDUCE_NORM in the program under way
};

}  // namespace

absl::Status CheckStepEnd(const Schedule& schedule, const ScheduleIndex& index) {
  return StepEndChecker(schedule, index).Check();
}

}  // namespace siphon
