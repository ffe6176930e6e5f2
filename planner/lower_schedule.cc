#include "planner/lower_schedule.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

// Whether the tensors between `stage` and `stage` + 1 go from one worker to another.
bool CrossesWorkers(const Schedule& schedule, int stage) {
  return stage >= 0 && stage + 1 < StageCount(schedule) &&
         schedule.worker_of_stage[stage] != schedule.worker_of_stage[stage + 1];
}

bool MakesInputGradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

void AppendWithCommunication(const Schedule& schedule, const Action& action,
                             std::vector<Action>& program) {
  const bool from_previous = CrossesWorkers(schedule, action.stage.value - 1);
  const bool to_next = CrossesWorkers(schedule, action.stage.value);
  const auto append = [&](ActionKind kind) {
    program.push_back({action.stage, kind, action.microbatch});
  };
  const bool forward = action.kind == ActionKind::kForward;
  const bool backward = MakesInputGradient(action.kind);
  if (forward && from_previous) append(ActionKind::kReceiveForward);
  if (backward && to_next) append(ActionKind::kReceiveBackward);
  program.push_back(action);
  if (forward && to_next) append(ActionKind::kSendForward);
  if (backward && from_previous) append(ActionKind::kSendBackward);
}

}  // namespace

absl::StatusOr<Schedule> InsertCommunication(Schedule schedule) {
  for (size_t worker = 0; worker < schedule.programs.size(); ++worker) {
    std::vector<Action> lowered;
    for (const Action& action : schedule.programs[worker]) {
      if (!IsCompute(action.kind)) {
        return absl::FailedPreconditionError(
            absl::StrCat("communication can be inserted among compute actions only, but worker ",
                         worker, " has ", ToString(action)));
      }
      if (action.stage.value < 0 || action.stage.value >= StageCount(schedule)) {
        return absl::FailedPreconditionError(absl::StrCat("worker ", worker, " has ",
                                                          ToString(action), ", but there are ",
                                                          StageCount(schedule), " stages"));
      }
      AppendWithCommunication(schedule, action, lowered);
    }
    schedule.programs[worker] = std::move(lowered);
  }
  return schedule;
}

Schedule AppendOptimizerStep(Schedule schedule,
                             const std::vector<StageId>& stages_with_shared_parameters) {
  std::vector<bool> shares(schedule.worker_of_stage.size(), false);
  for (const StageId stage : stages_with_shared_parameters) shares.at(stage.value) = true;
  for (size_t worker = 0; worker < schedule.programs.size(); ++worker) {
    const std::vector<StageId> stages = StagesOf(schedule, WorkerId(static_cast<int>(worker)));
    if (stages.empty()) continue;
    std::vector<Action>& program = schedule.programs[worker];
    for (const StageId stage : stages) {
      if (shares[stage.value]) program.push_back({stage, ActionKind::kReduceGradient, {}});
    }
    program.push_back({stages.front(), ActionKind::kReduceNorm, {}});
    for (const StageId stage : stages) program.push_back({stage, ActionKind::kStep, {}});
  }
  return schedule;
}

}  // namespace siphon
