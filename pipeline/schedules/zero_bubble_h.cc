#include "pipeline/schedules/zero_bubble_h.h"

#include <algorithm>
#include <cstddef>

#include "pipeline/schedules/placement.h"
#include "pipeline/schedules/program_writer.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<Schedule> BuildZeroBubbleH(const ScheduleShape& shape, absl::string_view name,
                                          const std::function<ZeroBubbleDepth(int stage)>& depth) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, name));
  for (int stage = 0; stage < shape.workers; ++stage) {
    const ZeroBubbleDepth of_stage = depth(stage);
    ProgramWriter program(schedule, stage);
    const int warm_up = std::min(of_stage.warm_up, shape.microbatches);
    for (int forward = 0; forward < warm_up; ++forward) program.Forward(stage);
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      program.BackwardInput(stage);
      if (program.waiting_weights() > static_cast<size_t>(of_stage.waiting_weights)) {
        program.OldestBackwardWeight();
      }
      if (program.forwards(stage) < shape.microbatches) program.Forward(stage);
    }
    program.AllBackwardWeights();
  }
  return schedule;
}

}  // namespace siphon
