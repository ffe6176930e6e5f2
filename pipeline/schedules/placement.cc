#include "pipeline/schedules/placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

Schedule WithoutStages(const ScheduleShape& shape) {
  Schedule schedule;
  schedule.microbatches = shape.microbatches;
  schedule.programs.resize(shape.workers);
  return schedule;
}

}  // namespace

absl::StatusOr<Schedule> OneStageAWorker(const ScheduleShape& shape, absl::string_view name) {
  if (shape.chunks != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", name, " takes one stage a worker, not ", shape.chunks, " chunks"));
  }
  return PlaceInLoop(shape);
}

Schedule PlaceInLoop(const ScheduleShape& shape) {
  Schedule schedule = WithoutStages(shape);
  for (int stage = 0; stage < shape.workers * shape.chunks; ++stage) {
    schedule.worker_of_stage.push_back(WorkerId(stage % shape.workers));
  }
  return schedule;
}

absl::StatusOr<Schedule> PlaceInV(const ScheduleShape& shape, absl::string_view name) {
  if (shape.chunks != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", name,
                     " runs down the workers and up again: it takes 2 chunks, not ", shape.chunks));
  }
  Schedule schedule = WithoutStages(shape);
  for (int stage = 0; stage < 2 * shape.workers; ++stage) {
    schedule.worker_of_stage.push_back(WorkerId(std::min(stage, 2 * shape.workers - 1 - stage)));
  }
  return schedule;
}

}  // namespace siphon
