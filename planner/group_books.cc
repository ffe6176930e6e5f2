#include "planner/group_books.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/marked_grid.h"

namespace siphon {

GroupBooks::GroupBooks(const Schedule& schedule, const MemoryPlan& plan, int worker)
    : schedule_(schedule),
      plan_(plan),
      worker_(worker),
      program_(schedule.programs[worker]),
      stashes_(FindWeightStashes(schedule, WorkerId(worker))),
      home_(HomeGroupsOf(program_, plan)),
      books_(schedule.worker_of_stage.size()) {
  for (const StageId stage : StagesOf(schedule, WorkerId(worker))) {
    const std::vector<PlannedGroup>& groups = GroupsOf(stage);
    books_[stage.value].resize(groups.size() * static_cast<size_t>(schedule.microbatches));
    for (size_t group = 0; group < groups.size(); ++group) {
      if (IsPassing(groups[group].group.kind)) continue;
      GroupBook& book = books_[stage.value][group];
      // The step before has changed what is home.
      book.changed = IsHome(stage, static_cast<int>(group));
      book.state = book.changed ? GroupState::kResident : GroupState::kAway;
    }
  }
}

const std::vector<PlannedGroup>& GroupBooks::GroupsOf(StageId stage) const {
  static const std::vector<PlannedGroup> none;
  return plan_.stages.empty() ? none : plan_.stages[stage.value].groups;
}

bool GroupBooks::IsFollowed(StageId stage, int group) const {
  const auto& [tensors, choice] = GroupsOf(stage)[group];
  if (choice.placement == Placement::kKeep) return false;
  return tensors.kind != GroupKind::kOptimizerState || !StepsOnHost(stage, tensors.layers);
}

GroupBook& GroupBooks::BookOf(int place, int group) {
  const Action& action = program_[place];
  const size_t groups = GroupsOf(action.stage).size();
  const GroupKind kind = GroupAt(action.stage, group).kind;
  MicrobatchId row(0);
  if (IsPassing(kind)) row = action.microbatch;
  const int stash = stashes_.At(place);
  if (kind == GroupKind::kWeightVersions && stash != WeightStashes::kNone) {
    row = stashes_.stashes[stash].update;
  }
  return books_[action.stage.value]
               [static_cast<size_t>(row.value) * groups + static_cast<size_t>(group)];
}

absl::Status GroupBooks::Follow(int place, int group) {
  const Action& action = program_[place];
  GroupBook& book = BookOf(place, group);
  std::string wanted;
  for (const GroupTransition& transition : TransitionsOf(GroupAt(action.stage, group).kind)) {
    if (transition.kind != action.kind) continue;
    if (transition.before == book.state) {
      if (transition.after != book.state) book.since = place;
      book.state = transition.after;
      return absl::OkStatus();
    }
    absl::StrAppend(&wanted, wanted.empty() ? "" : " or ", GroupStateText(transition.before));
  }
  return BadState(place, group, wanted);
}

std::string GroupBooks::Name(int place, int group) const {
  const Action& action = program_[place];
  const TensorGroup& tensors = GroupAt(action.stage, group);
  const int last = tensors.layers.end - 1;
  std::string name = absl::StrCat("group ", group, " of stage ", action.stage.value, " (",
                                  GroupKindName(tensors.kind), " of layer");
  absl::StrAppend(&name, last > tensors.layers.begin ? "s " : " ", tensors.layers.begin);
  if (last > tensors.layers.begin) absl::StrAppend(&name, " to ", last);
  if (tensors.first_tensors > 0) {
    absl::StrAppend(&name, ", its first ", tensors.first_tensors, " tensors");
  }
  absl::StrAppend(&name, ")");
  if (!IsPassing(tensors.kind) || !HasMicrobatch(action)) return name;
  if (tensors.kind == GroupKind::kActivations) {
    return absl::StrCat(name, " of microbatch ", action.microbatch.value);
  }
  const int stash = stashes_.At(place);
  const MicrobatchId update =
      stash == WeightStashes::kNone ? action.microbatch : stashes_.stashes[stash].update;
  absl::StrAppend(&name, " before the UPDATE of microbatch ", update.value);
  return name;
}

absl::Status GroupBooks::BadState(int place, int group, absl::string_view wanted) {
  const GroupBook& book = BookOf(place, group);
  std::string state(GroupStateText(book.state));
  if (book.since >= 0) absl::StrAppend(&state, " since ", ToString(program_[book.since]));
  return Bad(place, absl::StrCat(", which needs ", Name(place, group), " ", wanted, ", but it is ",
                                 state));
}

absl::Status GroupBooks::Bad(int place, absl::string_view complaint) const {
  return ScheduleError(
      schedule_, {worker_, place},
      absl::StrCat("worker ", worker_, " has ", ToString(program_[place]), complaint));
}

}  // namespace siphon
