#include "planner/check_group_residency.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/group_state.h"
#include "planner/marked_grid.h"
#include "planner/status.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

bool Covers(const std::vector<StageRange>& ranges, int layer) {
  return std::any_of(ranges.begin(), ranges.end(), [layer](const StageRange& range) {
    return range.begin <= layer && layer < range.end;
  });
}

bool Overlap(const StageRange& a, const StageRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

struct GroupBook {
  GroupState state = GroupState::kAbsent;
  bool changed = false;  // there is no copy elsewhere that still holds
  int since = -1;        // place of the action that brought it there
};

// The STEPs of a stage.
struct StepsSeen {
  std::vector<bool> of_group;
  std::vector<StageRange> layers;  // of those of groups
  bool of_the_rest = false;
};

constexpr int kNone = WeightStashes::kNone;

class WorkerGroups {
 public:
  WorkerGroups(const Schedule& schedule, const MemoryPlan& plan, int worker)
      : schedule_(schedule),
        plan_(plan),
        worker_(worker),
        program_(schedule.programs[worker]),
        stashes_(FindWeightStashes(schedule, WorkerId(worker))),
        books_(schedule.worker_of_stage.size()),
        steps_(schedule.worker_of_stage.size()) {
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) Open(stage);
  }

  absl::Status Check() {
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      if (action.group != kWholeStage) {
        SIPHON_RETURN_IF_ERROR(CheckNamed(place));
      } else if (IsMemory(action.kind) && !GroupsOf(action.stage).empty()) {
        return Bad(place, absl::StrCat(", which means the whole of stage ", action.stage.value,
                                       ", but the memory plan has tensor groups there: name one"));
      }
      if (action.kind == ActionKind::kUpdate && UpdatesOnHost(action.stage)) {
        return Bad(place, absl::StrCat(", but the memory plan has the step of stage ",
                                       action.stage.value, " on the host, which takes STEPs only"));
      }
      if (IsMemory(action.kind)) {
        if (action.group != kWholeStage) SIPHON_RETURN_IF_ERROR(Move(place, action.group.value));
      } else {
        SIPHON_RETURN_IF_ERROR(UseAll(place));
      }
    }
    return CheckEnd();
  }

 private:
  const std::vector<PlannedGroup>& GroupsOf(StageId stage) const {
    static const std::vector<PlannedGroup> none;
    return plan_.stages.empty() ? none : plan_.stages[stage.value].groups;
  }
  const TensorGroup& GroupAt(StageId stage, int group) const {
    return GroupsOf(stage)[group].group;
  }
  bool UpdatesOnHost(StageId stage) const {
    return !plan_.stages.empty() && plan_.stages[stage.value].update == UpdatePlace::kHost;
  }
  // A group that moves, or may.
  bool IsFollowed(StageId stage, int group) const {
    const auto& [tensors, choice] = GroupsOf(stage)[group];
    if (choice.placement == Placement::kKeep) return false;
    return tensors.kind != GroupKind::kOptimizerState || !UpdatesOnHost(stage);
  }

  // Activations have a book each microbatch, weight versions one each UPDATE's, other groups one.
  // Requires, for weight versions: a memory action, or one that goes by a stash or makes one.
  GroupBook& BookOf(int place, int group) {
    const Action& action = program_[place];
    const size_t groups = GroupsOf(action.stage).size();
    const GroupKind kind = GroupAt(action.stage, group).kind;
    MicrobatchId row(0);
    if (IsPassing(kind)) row = action.microbatch;
    const int stash = stashes_.At(place);
    if (kind == GroupKind::kWeightVersions && stash != kNone) row = stashes_.stashes[stash].update;
    return books_[action.stage.value]
                 [static_cast<size_t>(row.value) * groups + static_cast<size_t>(group)];
  }

  void Open(StageId stage) {
    const std::vector<PlannedGroup>& groups = GroupsOf(stage);
    books_[stage.value].resize(groups.size() * static_cast<size_t>(schedule_.microbatches));
    for (size_t group = 0; group < groups.size(); ++group) {
      if (IsPassing(groups[group].group.kind)) continue;
      books_[stage.value][group].state = GroupState::kAway;
    }
    StepsSeen& seen = steps_[stage.value];
    seen.of_group.assign(groups.size(), false);
    for (const Action& action : program_) {
      if (action.kind != ActionKind::kStep || action.stage != stage) continue;
      const auto id = static_cast<size_t>(action.group.value);
      if (action.group == kWholeStage) {
        seen.of_the_rest = true;
      } else if (id < groups.size()) {
        seen.of_group[id] = true;
        seen.layers.push_back(groups[id].group.layers);
      }
    }
  }

  // That the group which the action names is one that such an action is for.
  absl::Status CheckNamed(int place) const {
    const Action& action = program_[place];
    const std::vector<PlannedGroup>& groups = GroupsOf(action.stage);
    if (static_cast<size_t>(action.group.value) >= groups.size()) {
      return Bad(place, groups.empty()
                            ? absl::StrCat(", but the memory plan has no tensor groups in stage ",
                                           action.stage.value)
                            : absl::StrCat(", but the tensor groups of stage ", action.stage.value,
                                           " are 0 to ", groups.size() - 1));
    }
    const auto& [group, choice] = groups[action.group.value];
    const auto but = [&](absl::string_view why) {
      return Bad(place, absl::StrCat(", but ", Name(place, action.group.value), " ", why));
    };
    const bool activations = group.kind == GroupKind::kActivations;
    const bool version = group.kind == GroupKind::kWeightVersions;
    if (action.kind == ActionKind::kStep) {
      if (group.kind == GroupKind::kOptimizerState) return absl::OkStatus();
      return but("has no step: name a group of optimizer state");
    }
    if (IsPassing(group.kind) != HasMicrobatch(action)) {
      return but(activations ? "is there once a microbatch: name one"
                 : version   ? "is there once an UPDATE: name its microbatch"
                             : "belongs to no microbatch");
    }
    if (version && stashes_.Find(action.stage, action.microbatch) == kNone) {
      return but("is no stash: nothing goes by it behind an UPDATE of that microbatch");
    }
    if (version && action.kind == ActionKind::kDrop) {
      return but("never changes and has to go by SWAP_OUT");
    }
    if (group.kind == GroupKind::kOptimizerState && UpdatesOnHost(action.stage)) {
      return but("stays on the host, where the plan has the stage's step");
    }
    const bool computed =
        action.kind == ActionKind::kRecompute || (action.kind == ActionKind::kDrop && activations);
    const bool fits =
        computed ? choice.placement == Placement::kRecompute : IsSwap(choice.placement);
    if (fits && (activations || action.kind != ActionKind::kRecompute)) return absl::OkStatus();
    return but(absl::StrCat("is planned as ", PlacementName(choice.placement)));
  }

  // A memory action.
  absl::Status Move(int place, int group) {
    const Action& action = program_[place];
    GroupBook& book = BookOf(place, group);
    if (GroupAt(action.stage, group).kind == GroupKind::kActivations) {
      if (action.kind == ActionKind::kRecompute) {
        SIPHON_RETURN_IF_ERROR(UseParameters(place, GroupAt(action.stage, group).layers));
      }
      return Follow(place, group);
    }
    if (GroupAt(action.stage, group).kind == GroupKind::kWeightVersions) {
      SIPHON_RETURN_IF_ERROR(CheckVersion(place, group));
      return Follow(place, group);
    }
    if (action.kind == ActionKind::kDrop && book.state == GroupState::kResident && book.changed) {
      return Bad(place, absl::StrCat(", but ", Name(place, group), " has changed since it came ",
                                     "in: it has to go by SWAP_OUT"));
    }
    if (action.kind == ActionKind::kSwapOut) book.changed = false;
    return Follow(place, group);
  }

  // That a version leaves when it is made, and with the parameters there, and comes back when it is
  // a stash.
  absl::Status CheckVersion(int place, int group) {
    const Action& action = program_[place];
    const WeightStash& stash = stashes_.stashes[stashes_.Find(action.stage, action.microbatch)];
    if (place < stash.born) {
      return Bad(place, absl::StrCat(", but ", Name(place, group), " is made by ",
                                     ToString(program_[stash.born])));
    }
    if (action.kind == ActionKind::kSwapIn && place < stash.begin) {
      return Bad(place, absl::StrCat(", but ", Name(place, group), " is that of the parameters ",
                                     "until ", ToString(program_[stash.begin])));
    }
    for (int other = 0; other < static_cast<int>(GroupsOf(action.stage).size()); ++other) {
      const TensorGroup& tensors = GroupAt(action.stage, other);
      if (tensors.kind != GroupKind::kParameters || !IsFollowed(action.stage, other)) continue;
      if (!Overlap(tensors.layers, GroupAt(action.stage, group).layers)) continue;
      return Bad(place, absl::StrCat(", but the memory plan sends ", Name(place, other),
                                     " away, of which it is a version"));
    }
    return absl::OkStatus();
  }

  // An UPDATE that makes the group's version a stash, or an action that goes by it.
  absl::Status UseVersion(int place, int group) {
    const int stash = stashes_.At(place);
    if (stash == kNone) return absl::OkStatus();
    if (program_[place].kind == ActionKind::kUpdate) return Follow(place, group);
    GroupBook& book = BookOf(place, group);
    if (book.state != GroupState::kResident && book.state != GroupState::kArriving) {
      return BadState(place, group, "resident or on its way in");
    }
    const bool last = place == stashes_.stashes[stash].last_use;
    if (last || book.state == GroupState::kArriving) book.since = place;
    book.state = last ? GroupState::kUsed : GroupState::kResident;
    return absl::OkStatus();
  }

  absl::Status Follow(int place, int group) {
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

  // An action that works with the tensors of its stage.
  absl::Status UseAll(int place) {
    const Action& action = program_[place];
    const auto groups = static_cast<int>(GroupsOf(action.stage).size());
    SIPHON_RETURN_IF_ERROR(CheckRecomputations(place));
    for (int group = 0; group < groups; ++group) {
      const TensorGroup& tensors = GroupAt(action.stage, group);
      if (!IsFollowed(action.stage, group) || !UsesGroups(action.kind, tensors.kind)) continue;
      if (tensors.kind == GroupKind::kActivations) {
        SIPHON_RETURN_IF_ERROR(Follow(place, group));
      } else if (tensors.kind == GroupKind::kWeightVersions) {
        SIPHON_RETURN_IF_ERROR(UseVersion(place, group));
      } else if (action.kind != ActionKind::kStep || Steps(action, tensors)) {
        SIPHON_RETURN_IF_ERROR(UseStatic(place, group));
      }
    }
    return absl::OkStatus();
  }

  // What computes these layers again needs their parameters, of the version of the microbatch.
  absl::Status UseParameters(int place, const StageRange& layers) {
    const StageId stage = program_[place].stage;
    for (int group = 0; group < static_cast<int>(GroupsOf(stage).size()); ++group) {
      const TensorGroup& tensors = GroupAt(stage, group);
      if (!IsFollowed(stage, group) || !Overlap(tensors.layers, layers)) continue;
      if (tensors.kind == GroupKind::kParameters) SIPHON_RETURN_IF_ERROR(UseStatic(place, group));
      if (tensors.kind == GroupKind::kWeightVersions) {
        SIPHON_RETURN_IF_ERROR(UseVersion(place, group));
      }
    }
    return absl::OkStatus();
  }

  // That this STEP is one of the group's layers.
  bool Steps(const Action& step, const TensorGroup& group) const {
    if (step.group != kWholeStage) {
      const StageRange& layers = GroupAt(step.stage, step.group.value).layers;
      return Overlap(layers, group.layers);
    }
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      if (!Covers(steps_[step.stage.value].layers, layer)) return true;
    }
    return false;
  }

  absl::Status UseStatic(int place, int group) {
    const Action& action = program_[place];
    GroupBook& book = BookOf(place, group);
    const bool step = action.kind == ActionKind::kStep || action.kind == ActionKind::kUpdate;
    const bool at_host = step && UpdatesOnHost(action.stage) &&
                         GroupsOf(action.stage)[group].choice.placement == Placement::kHostSwap;
    // The host's own copy takes part in a step there.
    if (at_host && book.state == GroupState::kAway) return absl::OkStatus();
    if (IsCompute(action.kind) && IsStreamed(book.state)) return UseStreamed(place, group);
    if (book.state != GroupState::kResident && book.state != GroupState::kArriving) {
      return BadState(place, group, "resident or on its way in");
    }
    if (book.state == GroupState::kArriving) book = {GroupState::kResident, book.changed, place};
    const bool reads_only =
        GroupAt(action.stage, group).kind == GroupKind::kParameters && (!step || at_host);
    if (!reads_only) book.changed = true;
    return absl::OkStatus();
  }

  static bool IsStreamed(GroupState state) {
    return state == GroupState::kToDrop || state == GroupState::kToSwap;
  }

  // The action has the group only while it is at its layers.
  absl::Status UseStreamed(int place, int group) {
    GroupBook& book = BookOf(place, group);
    const bool drops = book.state == GroupState::kToDrop;
    book = {drops ? GroupState::kAway : GroupState::kLeaving, false, place};
    return absl::OkStatus();
  }

  // What a backward computes again when it comes to the group's last layer takes the parameters of
  // all its layers.
  absl::Status CheckRecomputed(int place, int dropped) {
    const StageId stage = program_[place].stage;
    const StageRange& layers = GroupAt(stage, dropped).layers;
    for (int group = 0; group < static_cast<int>(GroupsOf(stage).size()); ++group) {
      const TensorGroup& tensors = GroupAt(stage, group);
      if (tensors.kind != GroupKind::kParameters || !IsFollowed(stage, group)) continue;
      if (!IsStreamed(BookOf(place, group).state)) continue;
      if (!Overlap(tensors.layers, layers)) continue;
      if (tensors.layers.begin <= layers.begin && layers.end <= tensors.layers.end) continue;
      return Bad(place, absl::StrCat(", which computes ", Name(place, dropped), " again, but has ",
                                     Name(place, group), " only while it is at these layers"));
    }
    return absl::OkStatus();
  }

  // Before the action changes any state.
  absl::Status CheckRecomputations(int place) {
    const Action& action = program_[place];
    if (!IsCompute(action.kind)) return absl::OkStatus();
    for (int group = 0; group < static_cast<int>(GroupsOf(action.stage).size()); ++group) {
      if (GroupAt(action.stage, group).kind != GroupKind::kActivations) continue;
      if (!IsFollowed(action.stage, group)) continue;
      if (BookOf(place, group).state != GroupState::kDropped) continue;
      SIPHON_RETURN_IF_ERROR(CheckRecomputed(place, group));
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnd() {
    for (int place = static_cast<int>(program_.size()) - 1; place >= 0; --place) {
      const Action& action = program_[place];
      if (!IsMemory(action.kind) || action.group == kWholeStage) continue;
      const GroupBook& book = BookOf(place, action.group.value);
      const bool passing = IsPassing(GroupAt(action.stage, action.group.value).kind);
      const bool settled = passing ? book.state == GroupState::kUsed ||
                                         book.state == GroupState::kForWeights ||
                                         book.state == GroupState::kResident
                                   : book.state == GroupState::kAway;
      if (settled) continue;
      return Bad(place,
                 absl::StrCat(
                     ", but at the end of the program ", Name(place, action.group.value), " is ",
                     GroupStateText(book.state),
                     passing ? ", and nothing has used it" : "; the next step looks for it away"));
    }
    return CheckSteps();
  }

  // Where groups step one by one, each does, or a plain STEP takes the rest.
  absl::Status CheckSteps() const {
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& step = program_[place];
      if (step.kind != ActionKind::kStep || step.group == kWholeStage) continue;
      const StepsSeen& seen = steps_[step.stage.value];
      if (seen.of_the_rest) continue;
      const std::vector<PlannedGroup>& groups = GroupsOf(step.stage);
      for (size_t group = 0; group < groups.size(); ++group) {
        if (groups[group].group.kind != GroupKind::kOptimizerState || seen.of_group[group]) {
          continue;
        }
        return Bad(place,
                   absl::StrCat(", but nothing steps ", Name(place, static_cast<int>(group))));
      }
    }
    return absl::OkStatus();
  }

  // "group 2 of stage 0 (activations of layers 3 to 5) of microbatch 1"
  std::string Name(int place, int group) const {
    const Action& action = program_[place];
    const TensorGroup& tensors = GroupAt(action.stage, group);
    const int last = tensors.layers.end - 1;
    std::string name = absl::StrCat("group ", group, " of stage ", action.stage.value, " (",
                                    GroupKindName(tensors.kind), " of layer");
    absl::StrAppend(&name, last > tensors.layers.begin ? "s " : " ", tensors.layers.begin);
    if (last > tensors.layers.begin) absl::StrAppend(&name, " to ", last);
    absl::StrAppend(&name, ")");
    if (!IsPassing(tensors.kind) || !HasMicrobatch(action)) return name;
    if (tensors.kind == GroupKind::kActivations) {
      return absl::StrCat(name, " of microbatch ", action.microbatch.value);
    }
    const int stash = stashes_.At(place);
    const MicrobatchId update = stash == kNone ? action.microbatch : stashes_.stashes[stash].update;
    absl::StrAppend(&name, " before the UPDATE of microbatch ", update.value);
    return name;
  }

  absl::Status BadState(int place, int group, absl::string_view wanted) {
    const GroupBook& book = BookOf(place, group);
    std::string state(GroupStateText(book.state));
    if (book.since >= 0) absl::StrAppend(&state, " since ", ToString(program_[book.since]));
    return Bad(place, absl::StrCat(", which needs ", Name(place, group), " ", wanted,
                                   ", but it is ", state));
  }

  absl::Status Bad(int place, absl::string_view complaint) const {
    return ScheduleError(
        schedule_, {worker_, place},
        absl::StrCat("worker ", worker_, " has ", ToString(program_[place]), complaint));
  }

  const Schedule& schedule_;
  const MemoryPlan& plan_;
  const int worker_;
  const std::vector<Action>& program_;
  const WeightStashes stashes_;
  std::vector<std::vector<GroupBook>> books_;  // [stage][microbatch * groups + group]
  std::vector<StepsSeen> steps_;               // [stage]
};

}  // namespace

absl::Status CheckGroupResidency(const Schedule& schedule, const MemoryPlan& plan) {
  const auto stages = static_cast<size_t>(StageCount(schedule));
  if (!plan.stages.empty() && plan.stages.size() != stages) {
    return absl::InvalidArgumentError(absl::StrCat("the memory plan has ", plan.stages.size(),
                                                   " stages, but the schedule has ", stages));
  }
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    SIPHON_RETURN_IF_ERROR(WorkerGroups(schedule, plan, worker).Check());
  }
  return absl::OkStatus();
}

}  // namespace siphon
