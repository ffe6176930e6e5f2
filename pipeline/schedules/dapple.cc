#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/warm_up_schedule.h"
#include "planner/status.h"

namespace siphon {

// DAPPLE's early backward, Fan et al. 2021, arXiv:2007.01045, section 4: 1F1B whose warm-up is
// limited by the microbatches D that fit into memory. Policy A warms up as 1F1B does; policy B
// counts each transfer between two stages as a stage of its own, for transfers that take as long as
// computation.
absl::StatusOr<Schedule> BuildDapple(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "dapple"));
  const ScheduleOptions& options = shape.options;
  if (options.in_flight_limit < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule dapple: in_flight is ", options.in_flight_limit,
                     "; give the microbatches that fit into memory, or 0 for no limit"));
  }
  const int limit = options.in_flight_limit == 0 ? shape.microbatches : options.in_flight_limit;
  WriteWarmUpSchedule(schedule, [&](int stage) {
    const int behind = shape.workers - stage;
    return std::min(options.warm_up == WarmUpPolicy::kA ? behind : 2 * behind - 1, limit);
  });
  return schedule;
}

}  // namespace siphon
