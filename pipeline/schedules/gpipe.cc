#include "pipeline/schedules/builders.h"
#include "planner/status.h"

namespace siphon {

// GPipe, Huang et al. 2019, arXiv:1811.06965, figure 2(c): all forwards, then all backwards. The
// backwards ascend too (the figure descends), so that gradients add up in the order of
// microbatches, as in every other schedule.
absl::StatusOr<Schedule> BuildGpipe(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "gpipe"));
  for (int stage = 0; stage < shape.workers; ++stage) {
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        schedule.programs[stage].push_back({StageId(stage), kind, MicrobatchId(microbatch)});
      }
    }
  }
  return schedule;
}

}  // namespace siphon
