#include "pipeline/schedules/warm_up_schedule.h"

#include <algorithm>

#include "pipeline/schedules/program_writer.h"

namespace siphon {

void WriteWarmUpSchedule(
    Schedule& schedule, const std::function<int(int stage)>& warm_up,
    const std::function<void(ProgramWriter& program, int stage)>& behind_backward) {
  for (int stage = 0; stage < StageCount(schedule); ++stage) {
    ProgramWriter program(schedule, stage);
    const int ahead = std::min(warm_up(stage), schedule.microbatches);
    while (program.forwards(stage) < ahead) program.Forward(stage);
    while (program.backwards(stage) < schedule.microbatches) {
      program.Backward(stage);
      if (behind_backward) behind_backward(program, stage);
      if (program.forwards(stage) < schedule.microbatches) program.Forward(stage);
    }
  }
}

}  // namespace siphon
