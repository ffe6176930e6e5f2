#include "planner/check_group_residency.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/group_books.h"
#include "planner/group_state.h"
#include "planner/status.h"
#include "planner/weight_stashes.h"

namespace siphon {
namespace {

bool Covers(const std::vector<StageRange>& ranges, int layer) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [layer](const StageRange& range) { return Contains(range, layer); });
}

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
      : books_(schedule, plan, worker),
        program_(books_.program()),
        steps_(schedule.worker_of_stage.size()) {
    for (const StageId stage : StagesOf(schedule, WorkerId(worker))) NoteSteps(stage);
  }

  absl::Status Check() {
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      if (action.group != kWholeStage) {
        SIPHON_RETURN_IF_ERROR(CheckNamed(place));
      } else if (IsMemory(action.kind) && !books_.GroupsOf(action.stage).empty()) {
        return books_.Bad(place,
                          absl::StrCat(", which means the whole of stage ", action.stage.value,
                                       ", but the memory plan has tensor groups there: name one"));
      }
      if (action.kind == ActionKind::kUpdate && books_.UpdatesOnHost(action.stage)) {
        return books_.Bad(
            place, absl::StrCat(", but the memory plan has the step of stage ", action.stage.value,
                                " on the host, which takes STEPs only"));
      }
      SIPHON_RETURN_IF_ERROR(CheckStepOfTheRest(place));
      if (IsMemory(action.kind)) {
        if (action.group != kWholeStage) SIPHON_RETURN_IF_ERROR(Move(place, action.group.value));
      } else {
        SIPHON_RETURN_IF_ERROR(UseAll(place));
      }
    }
    return CheckEnd();
  }

 private:
  void NoteSteps(StageId stage) {
    const std::vector<PlannedGroup>& groups = books_.GroupsOf(stage);
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
    const std::vector<PlannedGroup>& groups = books_.GroupsOf(action.stage);
    if (static_cast<size_t>(action.group.value) >= groups.size()) {
      return books_.Bad(place,
                        groups.empty()
                            ? absl::StrCat(", but the memory plan has no tensor groups in stage ",
                                           action.stage.value)
                            : absl::StrCat(", but the tensor groups of stage ", action.stage.value,
                                           " are 0 to ", groups.size() - 1));
    }
    const auto& [group, choice] = groups[action.group.value];
    const auto but = [&](absl::string_view why) {
      return books_.Bad(place,
                        absl::StrCat(", but ", books_.Name(place, action.group.value), " ", why));
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
    if (version && books_.stashes().Find(action.stage, action.microbatch) == kNone) {
      return but("is no stash: nothing goes by it behind an UPDATE of that microbatch");
    }
    if (version && action.kind == ActionKind::kDrop) {
      return but("never changes and has to go by SWAP_OUT");
    }
    if (group.kind == GroupKind::kOptimizerState &&
        books_.StepsOnHost(action.stage, group.layers)) {
      return but("stays on the host, where the plan has its step");
    }
    const bool computed =
        action.kind == ActionKind::kRecompute || (action.kind == ActionKind::kDrop && activations);
    const bool fits =
        computed ? choice.placement == Placement::kRecompute : IsSwap(choice.placement);
    if (fits && (activations || action.kind != ActionKind::kRecompute)) return absl::OkStatus();
    return but(absl::StrCat("is planned as ", PlacementName(choice.placement)));
  }

  // Where a stage steps on the host, its plain STEP does; what steps on the device has its own.
  absl::Status CheckStepOfTheRest(int place) const {
    const Action& action = program_[place];
    const bool rest = action.kind == ActionKind::kStep && action.group == kWholeStage;
    if (!rest || !books_.UpdatesOnHost(action.stage)) return absl::OkStatus();
    for (const PlannedGroup& planned : books_.GroupsOf(action.stage)) {
      const auto& [group, choice] = planned;
      if (group.kind != GroupKind::kOptimizerState) continue;
      if (books_.StepsOnHost(action.stage, group.layers)) continue;
      for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
        if (Covers(steps_[action.stage.value].layers, layer)) continue;
        return books_.Bad(
            place, absl::StrCat(", a step on the host, but the optimizer state of layer ", layer,
                                " is planned as ", PlacementName(choice.placement),
                                " and steps on the device: in a STEP of its group"));
      }
    }
    return absl::OkStatus();
  }

  // A memory action.
  absl::Status Move(int place, int group) {
    const Action& action = program_[place];
    GroupBook& book = books_.BookOf(place, group);
    if (books_.GroupAt(action.stage, group).kind == GroupKind::kActivations) {
      if (action.kind == ActionKind::kRecompute) {
        SIPHON_RETURN_IF_ERROR(UseParameters(place, books_.GroupAt(action.stage, group).layers));
      }
      return books_.Follow(place, group);
    }
    if (books_.GroupAt(action.stage, group).kind == GroupKind::kWeightVersions) {
      SIPHON_RETURN_IF_ERROR(CheckVersion(place, group));
      return books_.Follow(place, group);
    }
    if (action.kind == ActionKind::kDrop && book.state == GroupState::kResident && book.changed) {
      return books_.Bad(
          place, absl::StrCat(", but ", books_.Name(place, group), " has changed since it came ",
                              "in: it has to go by SWAP_OUT"));
    }
    if (action.kind == ActionKind::kSwapOut) book.changed = false;
    return books_.Follow(place, group);
  }

  // That a version leaves when it is made, and with the parameters there, and comes back when it is
  // a stash.
  absl::Status CheckVersion(int place, int group) {
    const Action& action = program_[place];
    const WeightStash& stash =
        books_.stashes().stashes[books_.stashes().Find(action.stage, action.microbatch)];
    if (place < stash.born) {
      return books_.Bad(place, absl::StrCat(", but ", books_.Name(place, group), " is made by ",
                                            ToString(program_[stash.born])));
    }
    if (action.kind == ActionKind::kSwapIn && place < stash.begin) {
      return books_.Bad(
          place, absl::StrCat(", but ", books_.Name(place, group), " is that of the parameters ",
                              "until ", ToString(program_[stash.begin])));
    }
    for (int other = 0; other < static_cast<int>(books_.GroupsOf(action.stage).size()); ++other) {
      const TensorGroup& tensors = books_.GroupAt(action.stage, other);
      if (tensors.kind != GroupKind::kParameters || !books_.IsFollowed(action.stage, other))
        continue;
      if (!Overlap(tensors.layers, books_.GroupAt(action.stage, group).layers)) continue;
      return books_.Bad(place,
                        absl::StrCat(", but the memory plan sends ", books_.Name(place, other),
                                     " away, of which it is a version"));
    }
    return absl::OkStatus();
  }

  // An UPDATE that makes the group's version a stash, or an action that goes by it.
  absl::Status UseVersion(int place, int group) {
    const int stash = books_.stashes().At(place);
    if (stash == kNone) return absl::OkStatus();
    if (program_[place].kind == ActionKind::kUpdate) return books_.Follow(place, group);
    GroupBook& book = books_.BookOf(place, group);
    if (book.state != GroupState::kResident && book.state != GroupState::kArriving) {
      return books_.BadState(place, group, "resident or on its way in");
    }
    const bool last = place == books_.stashes().stashes[stash].last_use;
    if (last || book.state == GroupState::kArriving) book.since = place;
    book.state = last ? GroupState::kUsed : GroupState::kResident;
    return absl::OkStatus();
  }

  // An action that works with the tensors of its stage.
  absl::Status UseAll(int place) {
    const Action& action = program_[place];
    const auto groups = static_cast<int>(books_.GroupsOf(action.stage).size());
    SIPHON_RETURN_IF_ERROR(CheckRecomputations(place));
    for (int group = 0; group < groups; ++group) {
      const TensorGroup& tensors = books_.GroupAt(action.stage, group);
      if (!books_.IsFollowed(action.stage, group) || !UsesGroups(action.kind, tensors.kind))
        continue;
      if (tensors.kind == GroupKind::kActivations) {
        SIPHON_RETURN_IF_ERROR(books_.Follow(place, group));
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
    for (int group = 0; group < static_cast<int>(books_.GroupsOf(stage).size()); ++group) {
      const TensorGroup& tensors = books_.GroupAt(stage, group);
      if (!books_.IsFollowed(stage, group) || !Overlap(tensors.layers, layers)) continue;
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
      const StageRange& layers = books_.GroupAt(step.stage, step.group.value).layers;
      return Overlap(layers, group.layers);
    }
    for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
      if (!Covers(steps_[step.stage.value].layers, layer)) return true;
    }
    return false;
  }

  absl::Status UseStatic(int place, int group) {
    const Action& action = program_[place];
    GroupBook& book = books_.BookOf(place, group);
    const bool step = action.kind == ActionKind::kStep || action.kind == ActionKind::kUpdate;
    const bool at_host =
        step && books_.StepsOnHost(action.stage, books_.GroupAt(action.stage, group).layers) &&
        books_.GroupsOf(action.stage)[group].choice.placement == Placement::kHostSwap;
    // The host's own copy takes part in a step there.
    if (at_host && book.state == GroupState::kAway) return absl::OkStatus();
    if (IsCompute(action.kind) && IsStreamed(book.state)) return UseStreamed(place, group);
    if (book.state != GroupState::kResident && book.state != GroupState::kArriving) {
      return books_.BadState(place, group, "resident or on its way in");
    }
    if (book.state == GroupState::kArriving) book = {GroupState::kResident, book.changed, place};
    const bool reads_only =
        books_.GroupAt(action.stage, group).kind == GroupKind::kParameters && (!step || at_host);
    if (!reads_only) book.changed = true;
    return absl::OkStatus();
  }

  static bool IsStreamed(GroupState state) {
    return state == GroupState::kToDrop || state == GroupState::kToSwap;
  }

  // The action has the group only while it is at its layers.
  absl::Status UseStreamed(int place, int group) {
    GroupBook& book = books_.BookOf(place, group);
    const bool drops = book.state == GroupState::kToDrop;
    book = {drops ? GroupState::kAway : GroupState::kLeaving, false, place};
    return absl::OkStatus();
  }

  // What a backward computes again when it comes to the group's last layer takes the parameters of
  // all its layers.
  absl::Status CheckRecomputed(int place, int dropped) {
    const StageId stage = program_[place].stage;
    const StageRange& layers = books_.GroupAt(stage, dropped).layers;
    for (int group = 0; group < static_cast<int>(books_.GroupsOf(stage).size()); ++group) {
      const TensorGroup& tensors = books_.GroupAt(stage, group);
      if (tensors.kind != GroupKind::kParameters || !books_.IsFollowed(stage, group)) continue;
      if (!IsStreamed(books_.BookOf(place, group).state)) continue;
      if (!Overlap(tensors.layers, layers)) continue;
      if (tensors.layers.begin <= layers.begin && layers.end <= tensors.layers.end) continue;
      return books_.Bad(
          place, absl::StrCat(", which computes ", books_.Name(place, dropped), " again, but has ",
                              books_.Name(place, group), " only while it is at these layers"));
    }
    return absl::OkStatus();
  }

  // Before the action changes any state.
  absl::Status CheckRecomputations(int place) {
    const Action& action = program_[place];
    if (!IsCompute(action.kind)) return absl::OkStatus();
    for (int group = 0; group < static_cast<int>(books_.GroupsOf(action.stage).size()); ++group) {
      if (books_.GroupAt(action.stage, group).kind != GroupKind::kActivations) continue;
      if (!books_.IsFollowed(action.stage, group)) continue;
      if (books_.BookOf(place, group).state != GroupState::kDropped) continue;
      SIPHON_RETURN_IF_ERROR(CheckRecomputed(place, group));
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnd() {
    for (int place = static_cast<int>(program_.size()) - 1; place >= 0; --place) {
      const Action& action = program_[place];
      if (!IsMemory(action.kind) || action.group == kWholeStage) continue;
      const GroupBook& book = books_.BookOf(place, action.group.value);
      const bool passing = IsPassing(books_.GroupAt(action.stage, action.group.value).kind);
      const bool home = books_.IsHome(action.stage, action.group.value);
      const bool settled =
          passing ? book.state == GroupState::kUsed || book.state == GroupState::kForWeights ||
                        book.state == GroupState::kResident
                  : book.state == (home ? GroupState::kResident : GroupState::kAway);
      if (settled) continue;
      return books_.Bad(place, absl::StrCat(", but at the end of the program ",
                                            books_.Name(place, action.group.value), " is ",
                                            GroupStateText(book.state),
                                            passing ? ", and nothing has used it"
                                            : home  ? "; the next step looks for it resident"
                                                    : "; the next step looks for it away"));
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
      const std::vector<PlannedGroup>& groups = books_.GroupsOf(step.stage);
      for (size_t group = 0; group < groups.size(); ++group) {
        if (groups[group].group.kind != GroupKind::kOptimizerState || seen.of_group[group]) {
          continue;
        }
        return books_.Bad(place, absl::StrCat(", but nothing steps ",
                                              books_.Name(place, static_cast<int>(group))));
      }
    }
    return absl::OkStatus();
  }

  GroupBooks books_;
  const std::vector<Action>& program_;
  std::vector<StepsSeen> steps_;  // [stage]
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
