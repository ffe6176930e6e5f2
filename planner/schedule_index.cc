#include "planner/schedule_index.h"

#include <cstdint>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckStages(const Schedule& schedule) {
  const int workers = static_cast<int>(schedule.programs.size());
  if (schedule.worker_of_stage.empty()) {
    return absl::FailedPreconditionError("the schedule has no stages");
  }
  if (schedule.microbatches < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the schedule has ", schedule.microbatches, " microbatches"));
  }
  std::vector<bool> holds_stage(workers, false);
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    const int worker = schedule.worker_of_stage[stage].value;
    if (worker < 0 || worker >= workers) {
      return absl::FailedPreconditionError(absl::StrCat("stage ", stage, " is on worker ", worker,
                                                        ", but there are ", workers, " workers"));
    }
    holds_stage[worker] = true;
  }
  for (int worker = 0; worker < workers; ++worker) {
    if (!holds_stage[worker]) {
      return absl::FailedPreconditionError(absl::StrCat("worker ", worker, " holds no stage"));
    }
  }
  return absl::OkStatus();
}

// Fewer actions than one a cell cannot be complete; told before tables of that size are made.
absl::Status CheckSize(const Schedule& schedule) {
  int64_t actions = 0;
  for (const std::vector<Action>& program : schedule.programs) {
    actions += static_cast<int64_t>(program.size());
  }
  if (actions / schedule.microbatches >= StageCount(schedule)) return absl::OkStatus();
  return ScheduleError(
      schedule, {0, static_cast<int>(schedule.programs[0].size())},
      absl::StrCat(StageCount(schedule), " stages and ", schedule.microbatches,
                   " microbatches need at least ",
                   static_cast<int64_t>(StageCount(schedule)) * schedule.microbatches,
                   " actions, but there are ", actions));
}

absl::Status CheckAction(const Schedule& schedule, const Action& action, ActionPosition where) {
  const int stages = StageCount(schedule);
  if (action.stage.value < 0 || action.stage.value >= stages) {
    return ScheduleError(schedule, where,
                         absl::StrCat("worker ", where.worker, " has ", ToString(action),
                                      ", but stages are 0 to ", stages - 1));
  }
  if (HasMicrobatch(action) &&
      (action.microbatch.value < 0 || action.microbatch.value >= schedule.microbatches)) {
    return ScheduleError(schedule, where,
                         absl::StrCat("worker ", where.worker, " has ", ToString(action),
                                      ", but microbatches are 0 to ", schedule.microbatches - 1));
  }
  const int holder = schedule.worker_of_stage[action.stage.value].value;
  if (holder != where.worker) {
    return ScheduleError(
        schedule, where,
        absl::StrCat("worker ", where.worker, " has ", ToString(action), ", but stage ",
                     action.stage.value, " is on worker ", holder));
  }
  return absl::OkStatus();
}

// An action on a group: stage, kind, microbatch, group.
using GroupAction = std::tuple<StageId, ActionKind, MicrobatchId, GroupId>;

GroupAction Key(const Action& action) {
  return {action.stage, action.kind, action.microbatch, action.group};
}

bool MayRepeat(const Action& action) {
  return IsMemory(action.kind) && action.microbatch == kNoMicrobatch;
}

absl::Status Twice(const Schedule& schedule, ActionPosition where) {
  return ScheduleError(
      schedule, where,
      absl::StrCat("worker ", where.worker, " has ",
                   ToString(schedule.programs[where.worker][where.index]), " twice"));
}

}  // namespace

ScheduleIndex::ScheduleIndex(int stages, int microbatches)
    : microbatches_(static_cast<size_t>(microbatches)) {
  for (size_t kind = 0; kind < kActionKinds; ++kind) {
    const size_t cells = HasMicrobatch(static_cast<ActionKind>(kind)) ? microbatches_ : 1;
    index_of_[kind].assign(static_cast<size_t>(stages) * cells, -1);
  }
}

absl::StatusOr<ScheduleIndex> ScheduleIndex::Build(const Schedule& schedule, Actions actions) {
  SIPHON_RETURN_IF_ERROR(CheckStages(schedule));
  SIPHON_RETURN_IF_ERROR(CheckSize(schedule));
  ScheduleIndex index(StageCount(schedule), schedule.microbatches);
  absl::flat_hash_set<GroupAction> named;
  for (size_t worker = 0; worker < schedule.programs.size(); ++worker) {
    for (size_t place = 0; place < schedule.programs[worker].size(); ++place) {
      const Action& action = schedule.programs[worker][place];
      if (action.group != kWholeStage && actions == Actions::kWithoutGroups) continue;
      const ActionPosition where{static_cast<int>(worker), static_cast<int>(place)};
      SIPHON_RETURN_IF_ERROR(CheckAction(schedule, action, where));
      if (action.group != kWholeStage) {
        if (MayRepeat(action) || named.insert(Key(action)).second) continue;
        return Twice(schedule, where);
      }
      int& known = index.index_of_[static_cast<size_t>(action.kind)][index.Slot(action)];
      if (known >= 0) return Twice(schedule, where);
      known = where.index;
    }
  }
  return index;
}

}  // namespace siphon
