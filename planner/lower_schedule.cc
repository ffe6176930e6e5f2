#include "planner/lower_schedule.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

bool MakesInputGradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// Advances all workers cell by cell and writes down their programs with messages.
class CommunicationInserter {
 public:
  explicit CommunicationInserter(const Schedule& schedule)
      : schedule_(schedule),
        next_(schedule.programs.size(), 0),
        lowered_(schedule.programs.size()),
        input_ready_(Cells(), false),
        gradient_ready_(Cells(), false) {}

  absl::StatusOr<std::vector<std::vector<Action>>> Run() {
    bool done = false;
    while (!done) {
      done = true;
      bool progress = false;
      for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
        if (next_[worker] >= ProgramOf(worker).size()) continue;
        done = false;
        progress |= TakeCell(worker);
      }
      if (!done && !progress) return Stuck();
    }
    return std::move(lowered_);
  }

 private:
  const std::vector<Action>& ProgramOf(int worker) const { return schedule_.programs[worker]; }
  size_t Cells() const {
    return schedule_.worker_of_stage.size() * static_cast<size_t>(schedule_.microbatches);
  }
  size_t Slot(int stage, MicrobatchId microbatch) const {
    return static_cast<size_t>(stage) * schedule_.microbatches + microbatch.value;
  }

  bool IsReady(const Action& action) const {
    const int stage = action.stage.value;
    if (action.kind == ActionKind::kForward) {
      return stage == 0 || input_ready_[Slot(stage, action.microbatch)];
    }
    if (MakesInputGradient(action.kind)) {
      return stage + 1 == StageCount(schedule_) || gradient_ready_[Slot(stage, action.microbatch)];
    }
    return true;
  }

  // The actions of the worker's next cell are programs[worker][next_[worker], end).
  size_t EndOfCell(int worker) const {
    size_t end = next_[worker];
    while (end + 1 < ProgramOf(worker).size() &&
           ProgramOf(worker)[end].pairing == Pairing::kWithNext) {
      ++end;
    }
    return end + 1;
  }

  bool TakeCell(int worker) {
    const size_t end = EndOfCell(worker);
    for (size_t place = next_[worker]; place < end; ++place) {
      if (!IsReady(ProgramOf(worker)[place])) return false;
    }
    for (size_t place = next_[worker]; place < end; ++place) {
      lowered_[worker].push_back(ProgramOf(worker)[place]);
    }
    for (size_t place = next_[worker]; place < end; ++place) {
      PassOn(worker, ProgramOf(worker)[place]);
    }
    next_[worker] = end;
    return true;
  }

  // Gives what the action has made to the neighbouring stage, by a message if need be.
  void PassOn(int worker, const Action& action) {
    const bool forward = action.kind == ActionKind::kForward;
    if (!forward && !MakesInputGradient(action.kind)) return;
    const int to = action.stage.value + (forward ? 1 : -1);
    if (to < 0 || to >= StageCount(schedule_)) return;
    (forward ? input_ready_ : gradient_ready_)[Slot(to, action.microbatch)] = true;
    const int receiver = schedule_.worker_of_stage[to].value;
    if (receiver == worker) return;
    lowered_[worker].push_back({action.stage,
                                forward ? ActionKind::kSendForward : ActionKind::kSendBackward,
                                action.microbatch});
    lowered_[receiver].push_back(
        {StageId(to), forward ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward,
         action.microbatch});
  }

  absl::Status Stuck() const {
    for (int worker = 0; worker < WorkerCount(schedule_); ++worker) {
      if (next_[worker] >= ProgramOf(worker).size()) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "worker ", worker, " can never run ", ToString(ProgramOf(worker)[next_[worker]]),
          ": the workers wait for each other's compute actions"));
    }
    return absl::InternalError("no worker is stuck");
  }

  const Schedule& schedule_;
  std::vector<size_t> next_;  // of each worker: its first action that is not in lowered_
  std::vector<std::vector<Action>> lowered_;
  std::vector<bool> input_ready_;     // [stage, microbatch]: the stage before has made it
  std::vector<bool> gradient_ready_;  // [stage, microbatch]: the stage behind has made it
};

absl::Status CheckCanBeLowered(const Schedule& schedule) {
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    for (const Action& action : schedule.programs[worker]) {
      const absl::string_view problem =
          IsCommunication(action.kind) ? "a message already"
          : IsReduction(action.kind)   ? "the end of a lowered step"
          : action.stage.value < 0 || action.stage.value >= StageCount(schedule)
              ? "of no stage of the schedule"
          : HasMicrobatch(action.kind) &&
                  (action.microbatch.value < 0 || action.microbatch.value >= schedule.microbatches)
              ? "of no microbatch of the schedule"
              : "";
      if (problem.empty()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("messages can be inserted among compute actions only, but worker ", worker,
                       " has ", ToString(action), ", ", problem));
    }
  }
  return absl::OkStatus();
}

// A STEP or UPDATE of the stage stands in the program.
bool HasUpdate(const std::vector<Action>& program, StageId stage) {
  return std::any_of(program.begin(), program.end(), [&](const Action& action) {
    return action.stage == stage &&
           (action.kind == ActionKind::kStep || action.kind == ActionKind::kUpdate);
  });
}

}  // namespace

Schedule MergeBackward(Schedule schedule) {
  for (std::vector<Action>& program : schedule.programs) {
    std::vector<Action> merged;
    for (const Action& action : program) {
      const Action input{action.stage, ActionKind::kBackwardInput, action.microbatch};
      if (action.kind == ActionKind::kBackwardWeight && !merged.empty() && merged.back() == input) {
        merged.back().kind = ActionKind::kBackward;
      } else {
        merged.push_back(action);
      }
    }
    program = std::move(merged);
  }
  return schedule;
}

absl::StatusOr<Schedule> InsertCommunication(Schedule schedule) {
  SIPHON_RETURN_IF_ERROR(CheckCanBeLowered(schedule));
  SIPHON_ASSIGN_OR_RETURN(std::vector<std::vector<Action>> lowered,
                          CommunicationInserter(schedule).Run());
  schedule.programs = std::move(lowered);
  return schedule;
}

Schedule AppendOptimizerStep(Schedule schedule,
                             const std::vector<StageId>& stages_with_shared_parameters,
                             NormPlace norm) {
  std::vector<bool> shares(schedule.worker_of_stage.size(), false);
  for (const StageId stage : stages_with_shared_parameters) shares.at(stage.value) = true;
  for (int worker = 0; worker < WorkerCount(schedule); ++worker) {
    const std::vector<StageId> stages = StagesOf(schedule, WorkerId(worker));
    if (stages.empty()) continue;
    std::vector<Action>& program = schedule.programs[worker];
    const auto too_early = [&](const Action& action) {
      return action.kind == ActionKind::kStep && shares[action.stage.value];
    };
    program.erase(std::remove_if(program.begin(), program.end(), too_early), program.end());
    const size_t before_the_end = program.size();
    for (const StageId stage : stages) {
      if (shares[stage.value]) program.push_back({stage, ActionKind::kReduceGradient, {}});
    }
    const Action reduces{stages.front(), ActionKind::kReduceNorm, {}};
    if (norm == NormPlace::kBeforeSteps) program.push_back(reduces);
    const std::vector<Action> stepped(
        program.begin(), program.begin() + static_cast<std::ptrdiff_t>(before_the_end));
    for (const StageId stage : stages) {
      if (!HasUpdate(stepped, stage)) program.push_back({stage, ActionKind::kStep, {}});
    }
    if (norm == NormPlace::kBehindSteps) program.push_back(reduces);
  }
  return schedule;
}

}  // namespace siphon
