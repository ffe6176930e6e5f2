#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/warm_up_schedule.h"
#include "planner/status.h"

namespace siphon {

// 1F1B with a flush, Narayanan et al. 2021, arXiv:2104.04473, figure 3: a stage warms up with one
// forward for itself and each stage behind it, then goes backward and forward in turn.
absl::StatusOr<Schedule> BuildOneForwardOneBackward(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "1f1b"));
  WriteWarmUpSchedule(schedule, [&](int stage) { return shape.workers - stage; });
  return schedule;
}

}  // namespace siphon
