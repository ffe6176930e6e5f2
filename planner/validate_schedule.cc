#include "planner/validate_schedule.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "planner/check_residency.h"
#include "planner/check_step_end.h"
#include "planner/find_deadlock.h"
#include "planner/marked_grid.h"
#include "planner/schedule_index.h"
#include "planner/status.h"

namespace siphon {
namespace {

class Validator {
 public:
  Validator(const Schedule& schedule, SchedulePurpose purpose, const MemoryPlan& plan,
            ScheduleIndex index)
      : schedule_(schedule), purpose_(purpose), plan_(plan), index_(std::move(index)) {
    for (const std::vector<Action>& program : schedule.programs) {
      for (const Action& action : program) {
        has_communication_ |= IsCommunication(action.kind);
        has_step_end_ |= IsReduction(action.kind);
      }
    }
  }

  absl::Status Validate() const {
    SIPHON_RETURN_IF_ERROR(CheckAllowed());
    SIPHON_RETURN_IF_ERROR(CheckPairs());
    SIPHON_RETURN_IF_ERROR(CheckComputeCoverage());
    if (IsLowered()) SIPHON_RETURN_IF_ERROR(CheckCommunicationCoverage());
    SIPHON_RETURN_IF_ERROR(CheckOrder());
    SIPHON_RETURN_IF_ERROR(CheckStepEnd(schedule_, index_));
    if (IsTraining()) SIPHON_RETURN_IF_ERROR(CheckResidency(schedule_, plan_));
    SIPHON_RETURN_IF_ERROR(CheckChannels());
    return FindDeadlock(schedule_, index_,
                        IsLowered() ? WaitsFor::kCommunication : WaitsFor::kCompute);
  }

 private:
  // A schedule with the end of a step is meant to run, so it must have its communication as well.
  bool IsLowered() const { return has_communication_ || has_step_end_; }
  bool IsTraining() const { return purpose_ == SchedulePurpose::kTraining; }

  int WorkerOf(StageId stage) const { return schedule_.worker_of_stage[stage.value].value; }
  bool Exists(StageId stage) const {
    return stage.value >= 0 && stage.value < StageCount(schedule_);
  }

  // Whether tensors between the two stages go from one worker to another.
  bool CrossesWorkers(StageId a, StageId b) const {
    return Exists(a) && Exists(b) && WorkerOf(a) != WorkerOf(b);
  }

  // B, or I where the schedule splits that backward.
  Action InputGradientOf(StageId stage, MicrobatchId microbatch) const {
    const Action whole{stage, ActionKind::kBackward, microbatch};
    const Action split{stage, ActionKind::kBackwardInput, microbatch};
    return index_.Has(split) ? split : whole;
  }

  absl::Status Bad(ActionPosition where, absl::string_view sentence) const {
    return ScheduleError(schedule_, where, sentence);
  }

  absl::Status Missing(const Action& action, absl::string_view why) const {
    const int worker = WorkerOf(action.stage);
    const int end = static_cast<int>(schedule_.programs[worker].size());
    return Bad({worker, end},
               absl::StrCat("worker ", worker, " lacks ", ToString(action), ": ", why));
  }

  absl::Status Require(const Action& action, absl::string_view why) const {
    if (index_.Has(action)) return absl::OkStatus();
    return Missing(action, why);
  }

  // fn(action, position) for every action, worker by worker; stops at the first error.
  template <typename Fn>
  absl::Status ForEach(Fn fn) const {
    for (size_t worker = 0; worker < schedule_.programs.size(); ++worker) {
      for (size_t place = 0; place < schedule_.programs[worker].size(); ++place) {
        SIPHON_RETURN_IF_ERROR(
            fn(schedule_.programs[worker][place],
               ActionPosition{static_cast<int>(worker), static_cast<int>(place)}));
      }
    }
    return absl::OkStatus();
  }

  // No action that the purpose or the placement of stages rules out.
  absl::Status CheckAllowed() const {
    return ForEach([&](const Action& action, ActionPosition where) -> absl::Status {
      const bool forward = action.kind == ActionKind::kForward ||
                           action.kind == ActionKind::kSendForward ||
                           action.kind == ActionKind::kReceiveForward;
      if (!IsTraining() && !forward) {
        return Bad(where, absl::StrCat("a forward-only schedule has ", ToString(action)));
      }
      if (!IsCommunication(action.kind)) return absl::OkStatus();
      const StageId other = PartnerOf(action).stage;
      if (!Exists(other)) {
        return Bad(where, absl::StrCat(ToString(action), " has no partner: there is no stage ",
                                       other.value));
      }
      if (!CrossesWorkers(action.stage, other)) {
        return Bad(where,
                   absl::StrCat(ToString(action), " has no partner: stage ", other.value,
                                " is on worker ", where.worker, " too and needs no message"));
      }
      return absl::OkStatus();
    });
  }

  // The first of a compound cell has its second right behind it.
  absl::Status CheckPairs() const {
    return ForEach([&](const Action& action, ActionPosition where) -> absl::Status {
      if (action.pairing == Pairing::kAlone) return absl::OkStatus();
      const std::vector<Action>& program = schedule_.programs[where.worker];
      const size_t next = static_cast<size_t>(where.index) + 1;
      if (IsCompute(action.kind) && next < program.size() && IsCompute(program[next].kind) &&
          program[next].pairing == Pairing::kAlone) {
        return absl::OkStatus();
      }
      return Bad(where, absl::StrCat("worker ", where.worker, " has ", ToString(action),
                                     " as the first of a compound cell, but no compute action "
                                     "follows as its second"));
    });
  }

  template <typename Fn>
  absl::Status ForEachCell(Fn fn) const {
    for (int stage = 0; stage < StageCount(schedule_); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.microbatches; ++microbatch) {
        SIPHON_RETURN_IF_ERROR(fn(StageId(stage), MicrobatchId(microbatch)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckComputeCoverage() const {
    return ForEachCell([&](StageId stage, MicrobatchId microbatch) -> absl::Status {
      SIPHON_RETURN_IF_ERROR(Require({stage, ActionKind::kForward, microbatch},
                                     "every microbatch goes forward through every stage once"));
      if (!IsTraining()) return absl::OkStatus();
      const Action whole{stage, ActionKind::kBackward, microbatch};
      const Action input{stage, ActionKind::kBackwardInput, microbatch};
      const Action weight{stage, ActionKind::kBackwardWeight, microbatch};
      if (!index_.Has(input) && !index_.Has(weight)) {
        return Require(whole, "every microbatch goes backward through every stage once");
      }
      if (index_.Has(whole)) {
        const Action& part = index_.Has(input) ? input : weight;
        return Bad({WorkerOf(stage), index_.Find(part)},
                   absl::StrCat("worker ", WorkerOf(stage), " has both ", ToString(whole), " and ",
                                ToString(part), ", which is a part of it"));
      }
      SIPHON_RETURN_IF_ERROR(Require(input, "a split backward has an I and a W"));
      return Require(weight, "a split backward has an I and a W");
    });
  }

  absl::Status CheckCommunicationCoverage() const {
    return ForEachCell([&](StageId stage, MicrobatchId microbatch) -> absl::Status {
      const StageId next(stage.value + 1);
      if (!CrossesWorkers(stage, next)) return absl::OkStatus();
      const std::string why =
          absl::StrCat("stages ", stage.value, " and ", next.value, " are on different workers");
      SIPHON_RETURN_IF_ERROR(Require({stage, ActionKind::kSendForward, microbatch}, why));
      SIPHON_RETURN_IF_ERROR(Require({next, ActionKind::kReceiveForward, microbatch}, why));
      if (!IsTraining()) return absl::OkStatus();
      SIPHON_RETURN_IF_ERROR(Require({next, ActionKind::kSendBackward, microbatch}, why));
      return Require({stage, ActionKind::kReceiveBackward, microbatch}, why);
    });
  }

  // Each action stands behind what it needs of its own worker; what it needs of others is for
  // FindDeadlock.
  absl::Status CheckOrder() const {
    return ForEach(
        [&](const Action& action, ActionPosition where) { return CheckNeeds(action, where); });
  }

  absl::Status CheckNeeds(const Action& action, ActionPosition where) const {
    const StageId stage = action.stage;
    const StageId previous(stage.value - 1);
    const StageId next(stage.value + 1);
    const MicrobatchId microbatch = action.microbatch;
    const auto behind = [&](const Action& needed) { return CheckBehind(action, where, needed); };
    switch (action.kind) {
      case ActionKind::kForward:
        if (!Exists(previous)) return absl::OkStatus();
        if (!CrossesWorkers(previous, stage)) {
          return behind({previous, ActionKind::kForward, microbatch});
        }
        if (!IsLowered()) return absl::OkStatus();
        return behind({stage, ActionKind::kReceiveForward, microbatch});
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
        SIPHON_RETURN_IF_ERROR(behind({stage, ActionKind::kForward, microbatch}));
        if (!Exists(next)) return absl::OkStatus();
        if (!CrossesWorkers(stage, next)) return behind(InputGradientOf(next, microbatch));
        if (!IsLowered()) return absl::OkStatus();
        return behind({stage, ActionKind::kReceiveBackward, microbatch});
      case ActionKind::kBackwardWeight:
        return behind({stage, ActionKind::kBackwardInput, microbatch});
      case ActionKind::kSendForward:
        return behind({stage, ActionKind::kForward, microbatch});
      case ActionKind::kSendBackward:
        return behind(InputGradientOf(stage, microbatch));
      default:
        return absl::OkStatus();
    }
  }

  absl::Status CheckBehind(const Action& action, ActionPosition where, const Action& needed) const {
    if (index_.Find(needed) < where.index) return absl::OkStatus();
    return Bad(where, absl::StrCat("worker ", where.worker, " has ", ToString(action), " before ",
                                   ToString(needed), ", which it needs"));
  }

  // Messages of one channel are received in the order in which they are sent.
  absl::Status CheckChannels() const {
    using Source = std::pair<int, ActionKind>;  // sending worker, direction
    for (size_t worker = 0; worker < schedule_.programs.size(); ++worker) {
      absl::flat_hash_map<Source, Action> latest;
      const std::vector<Action>& program = schedule_.programs[worker];
      for (int place = 0; place < static_cast<int>(program.size()); ++place) {
        const Action& receive = program[place];
        if (receive.kind != ActionKind::kReceiveForward &&
            receive.kind != ActionKind::kReceiveBackward) {
          continue;
        }
        const Action send = PartnerOf(receive);
        const int sender = WorkerOf(send.stage);
        const auto [earlier, is_first] = latest.insert({{sender, send.kind}, receive});
        if (is_first) continue;
        const Action earlier_send = PartnerOf(earlier->second);
        if (index_.Find(send) < index_.Find(earlier_send)) {
          return Bad({static_cast<int>(worker), place},
                     absl::StrCat("worker ", worker, " has ", ToString(receive), " behind ",
                                  ToString(earlier->second), ", but worker ", sender, " sends ",
                                  ToString(send), " before ", ToString(earlier_send)));
        }
        earlier->second = receive;
      }
    }
    return absl::OkStatus();
  }

  const Schedule& schedule_;
  const SchedulePurpose purpose_;
  const MemoryPlan& plan_;
  const ScheduleIndex index_;
  bool has_communication_ = false;
  bool has_step_end_ = false;
};

}  // namespace

absl::Status ValidateSchedule(const Schedule& schedule, SchedulePurpose purpose,
                              const MemoryPlan& plan) {
  SIPHON_ASSIGN_OR_RETURN(ScheduleIndex index, ScheduleIndex::Build(schedule));
  return Validator(schedule, purpose, plan, std::move(index)).Validate();
}

}  // namespace siphon
