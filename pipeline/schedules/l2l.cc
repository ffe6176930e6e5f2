#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/program_writer.h"

namespace siphon {

// Layer to layer, Pudipeddi et al. 2020, arXiv:2002.05645: one worker, one stage at a time. Every
// microbatch goes through a stage before the next stage begins, so that only its weights need be
// there, and a stage is updated right after its last backward.
absl::StatusOr<Schedule> BuildL2L(const ScheduleShape& shape) {
  if (shape.workers != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule l2l runs on one worker, not ", shape.workers,
                     "; its chunks are the stages that take turns there"));
  }
  Schedule schedule = PlaceInLoop(shape);
  ProgramWriter program(schedule, 0);
  for (int stage = 0; stage < shape.chunks; ++stage) {
    for (int i = 0; i < shape.microbatches; ++i) program.Forward(stage);
  }
  for (int stage = shape.chunks - 1; stage >= 0; --stage) {
    for (int i = 0; i < shape.microbatches; ++i) program.Backward(stage);
    program.Step(stage);
  }
  return schedule;
}

}  // namespace siphon
