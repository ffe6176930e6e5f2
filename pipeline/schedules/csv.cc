#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

// Workers of a file may hold different numbers of stages: then chunks mean nothing.
bool IsUneven(const Schedule& schedule) {
  const size_t first = StagesOf(schedule, WorkerId(0)).size();
  for (int worker = 1; worker < WorkerCount(schedule); ++worker) {
    if (StagesOf(schedule, WorkerId(worker)).size() != first) return true;
  }
  return false;
}

absl::Status CheckShapeOfFile(const Schedule& schedule, const ScheduleShape& shape) {
  const int workers = WorkerCount(schedule);
  const int stages = StageCount(schedule);
  if (workers == shape.workers && schedule.microbatches == shape.microbatches &&
      (stages == shape.workers * shape.chunks || IsUneven(schedule))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("schedule csv: the file is for ", workers, " workers, ", stages, " stages and ",
                   schedule.microbatches, " microbatches, but the job has ", shape.workers,
                   " workers, ", shape.workers * shape.chunks, " stages (", shape.chunks,
                   " a worker) and ", shape.microbatches, " microbatches"));
}

// Lowering writes these anew, in an order on which no worker can hang.
bool BelongsToLowering(const Action& action) {
  return IsCommunication(action.kind) || IsReduction(action.kind) ||
         action.kind == ActionKind::kStep;
}

}  // namespace

// A file in one of the two formats of torch.distributed.pipelining. Its messages and the end of its
// step are dropped; everything else stays in its order.
absl::StatusOr<Schedule> BuildCsv(const ScheduleShape& shape) {
  if (shape.options.csv.empty()) {
    return absl::InvalidArgumentError("schedule csv needs a file to read");
  }
  absl::StatusOr<Schedule> parsed = ParseScheduleCsv(shape.options.csv);
  if (!parsed.ok()) return Annotate(parsed.status(), "schedule csv");
  Schedule schedule = *std::move(parsed);
  SIPHON_RETURN_IF_ERROR(CheckShapeOfFile(schedule, shape));
  for (std::vector<Action>& program : schedule.programs) {
    for (const Action& action : program) {
      if (action.kind != ActionKind::kUpdate) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("schedule csv: the file has ", ToString(action),
                       ", but schedules from files update their weights at the end of a step"));
    }
    program.erase(std::remove_if(program.begin(), program.end(), BelongsToLowering), program.end());
  }
  const absl::Status valid = ValidateSchedule(schedule, SchedulePurpose::kTraining);
  if (!valid.ok())
    return absl::InvalidArgumentError(absl::StrCat("schedule csv: ", valid.message()));
  return schedule;
}

}  // namespace siphon
