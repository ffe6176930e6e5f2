#include <algorithm>

#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/program_writer.h"
#include "planner/status.h"

namespace siphon {
namespace {

void BackwardBoth(ProgramWriter& program, int stage) {
  program.BackwardInput(stage);
  program.BackwardWeight(stage);
}

// `down` and `up` are the stages of `worker` on the two arms of the V. Written for at least as many
// microbatches as fill the pipeline; the writer leaves out those that the schedule does not have.
void WriteWorker(ProgramWriter& program, const ScheduleShape& shape, int worker) {
  const int down = worker;
  const int up = 2 * shape.workers - 1 - worker;
  const int microbatches = std::max(2 * shape.workers - 1, shape.microbatches);
  const int behind = shape.workers - worker;  // workers from this one to the turn of the V
  for (int i = 0; i < 2 * behind - 1; ++i) program.Forward(down);
  for (int i = 0; i < worker; ++i) {
    program.Forward(up);
    program.Forward(down);
  }
  for (int i = 0; i < behind; ++i) {
    program.Forward(up);
    BackwardBoth(program, up);
  }
  while (program.forwards(up) < microbatches) {
    if (program.forwards(down) < microbatches) program.Forward(down);
    BackwardBoth(program, down);
    program.Forward(up);
    BackwardBoth(program, up);
  }
  // No forward is left to hide behind: weight gradients wait, so that input gradients reach the
  // workers in front as early as possible.
  for (int i = 0; i < worker; ++i) {
    program.BackwardInput(down);
    program.BackwardInput(up);
  }
  for (int i = 0; i < behind; ++i) BackwardBoth(program, down);
  for (int i = 0; i < worker; ++i) program.BackwardWeight(up);
  program.AllBackwardWeights();
}

}  // namespace

// ZB-V, Qi et al. 2024, arXiv:2401.10241, section 6 and figure 6, in the order of
// torch.distributed.pipelining. Without idle time between a worker's first and last action when F,
// I and W take the same time.
absl::StatusOr<Schedule> BuildZbv(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, PlaceInV(shape, "zbv"));
  for (int worker = 0; worker < shape.workers; ++worker) {
    ProgramWriter program(schedule, worker);
    WriteWorker(program, shape, worker);
  }
  return schedule;
}

}  // namespace siphon
