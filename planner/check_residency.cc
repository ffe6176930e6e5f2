#include "planner/check_residency.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "planner/check_group_residency.h"
#include "planner/marked_grid.h"
#include "planner/status.h"

namespace siphon {
namespace {

enum class Residence { kAbsent, kResident, kLeaving, kAway, kArriving, kDropped };

absl::string_view Describe(Residence residence) {
  switch (residence) {
    case Residence::kAbsent:
      return "not there";
    case Residence::kResident:
      return "resident";
    case Residence::kLeaving:
      return "on their way out";
    case Residence::kAway:
      return "away";
    case Residence::kArriving:
      return "on their way in";
    case Residence::kDropped:
      return "dropped";
  }
  return "unknown";
}

// An action may start when the activations are `before`, and leaves them `after`.
struct Transition {
  ActionKind kind;
  Residence before;
  Residence after;
};

constexpr Transition kTransitions[] = {
    {ActionKind::kForward, Residence::kAbsent, Residence::kResident},
    {ActionKind::kBackward, Residence::kResident, Residence::kAbsent},
    {ActionKind::kBackwardInput, Residence::kResident, Residence::kResident},
    {ActionKind::kBackwardWeight, Residence::kResident, Residence::kAbsent},
    {ActionKind::kSwapOut, Residence::kResident, Residence::kLeaving},
    {ActionKind::kSwapOutEnd, Residence::kLeaving, Residence::kAway},
    {ActionKind::kSwapIn, Residence::kAway, Residence::kArriving},
    {ActionKind::kSwapInEnd, Residence::kArriving, Residence::kResident},
    {ActionKind::kDrop, Residence::kResident, Residence::kDropped},
    {ActionKind::kRecompute, Residence::kDropped, Residence::kResident},
};

struct Activations {
  Residence residence = Residence::kAbsent;
  int since = -1;  // place of the action that brought them there
};

const Transition* TransitionOf(ActionKind kind) {
  for (const Transition& transition : kTransitions) {
    if (transition.kind == kind) return &transition;
  }
  return nullptr;
}

class WorkerResidency {
 public:
  WorkerResidency(const Schedule& schedule, int worker)
      : schedule_(schedule), worker_(worker), program_(schedule.programs[worker]) {}

  absl::Status Check() {
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      const Transition* transition = TransitionOf(action.kind);
      if (transition == nullptr || action.group != kWholeStage) continue;
      Activations& activations = held_[{action.stage, action.microbatch}];
      if (activations.residence != transition->before) {
        return Bad(place, absl::StrCat("worker ", worker_, " has ", ToString(action),
                                       ", which needs the activations of stage ",
                                       action.stage.value, ", microbatch ", action.microbatch.value,
                                       " ", Describe(transition->before), ", but they are ",
                                       Since(activations)));
      }
      activations = {transition->after, place};
    }
    return CheckNothingUnderWay();
  }

 private:
  absl::Status Bad(int place, absl::string_view sentence) const {
    return ScheduleError(schedule_, {worker_, place}, sentence);
  }

  std::string Since(const Activations& activations) const {
    if (activations.since < 0) return std::string(Describe(activations.residence));
    return absl::StrCat(Describe(activations.residence), " since ",
                        ToString(program_[activations.since]));
  }

  absl::Status CheckNothingUnderWay() const {
    for (int place = 0; place < static_cast<int>(program_.size()); ++place) {
      const Action& action = program_[place];
      const auto found = held_.find({action.stage, action.microbatch});
      if (found == held_.end() || found->second.since != place || !IsMemory(action.kind)) continue;
      if (found->second.residence == Residence::kResident) continue;
      return Bad(place, absl::StrCat("worker ", worker_, " has ", ToString(action),
                                     ", but nothing brings the activations back: at the end of "
                                     "the program they are ",
                                     Describe(found->second.residence)));
    }
    return absl::OkStatus();
  }

  const Schedule& schedule_;
  const int worker_;
  const std::vector<Action>& program_;
  absl::flat_hash_map<std::pair<StageId, MicrobatchId>, Activations> held_;
};

}  // namespace

absl::Status CheckResidency(const Schedule& schedule, const MemoryPlan& plan) {
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    SIPHON_RETURN_IF_ERROR(WorkerResidency(schedule, worker).Check());
  }
  return CheckGroupResidency(schedule, plan);
}

absl::Status CheckLiveActivations(const Schedule& schedule, const std::vector<int>& limits) {
  SIPHON_CHECK(limits.size() == schedule.programs.size(), "there is one limit a worker");
  const std::vector<int> peaks = PeakLiveActivations(schedule);
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    if (peaks[worker] <= limits[worker]) continue;
    const std::vector<Action>& program = schedule.programs[worker];
    int live = 0;
    int ended = 0;  // lives that end with the compound cell under way, both ends included
    for (int place = 0; place < static_cast<int>(program.size()); ++place) {
      const ActionKind kind = program[place].kind;
      if (kind == ActionKind::kForward && ++live > limits[worker]) {
        return ScheduleError(schedule, {worker, place},
                             absl::StrCat("worker ", worker, " keeps the activations of ", live,
                                          " microbatches from ", ToString(program[place]),
                                          " on; its limit is ", limits[worker]));
      }
      if (kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight) ++ended;
      if (program[place].pairing == Pairing::kWithNext) continue;
      live -= std::exchange(ended, 0);
    }
  }
  return absl::OkStatus();
}

}  // namespace siphon
