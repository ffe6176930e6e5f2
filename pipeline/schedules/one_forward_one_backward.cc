#include <algorithm>

#include "pipeline/schedules/builders.h"
#include "planner/status.h"

namespace siphon {

// 1F1B with a flush, Narayanan et al. 2021, arXiv:2104.04473, figure 3: a stage warms up with one
// forward for itself and each stage behind it, then goes backward and forward in turn.
absl::StatusOr<Schedule> BuildOneForwardOneBackward(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "1f1b"));
  for (int stage = 0; stage < shape.workers; ++stage) {
    const auto append = [&](ActionKind kind, int microbatch) {
      schedule.programs[stage].push_back({StageId(stage), kind, MicrobatchId(microbatch)});
    };
    const int warm_up = std::min(shape.workers - stage, shape.microbatches);
    for (int microbatch = 0; microbatch < warm_up; ++microbatch) {
      append(ActionKind::kForward, microbatch);
    }
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      append(ActionKind::kBackward, microbatch);
      if (microbatch + warm_up < shape.microbatches) {
        append(ActionKind::kForward, microbatch + warm_up);
      }
    }
  }
  return schedule;
}

}  // namespace siphon
