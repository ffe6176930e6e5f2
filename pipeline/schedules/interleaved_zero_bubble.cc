#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/interleaved_turns.h"
#include "pipeline/schedules/program_writer.h"

namespace siphon {

// Interleaved zero bubble, as torch.distributed.pipelining has it: ZB-H1 (Qi et al. 2024,
// arXiv:2401.10241, section 2.3) over the turns of interleaved 1F1B. Input gradients travel up one
// step a worker, so one more forward for each worker behind is warm-up enough, and worker w falls w
// weight gradients behind to fill its bubble at the end.
absl::StatusOr<Schedule> BuildInterleavedZeroBubble(const ScheduleShape& shape) {
  Schedule schedule = PlaceInLoop(shape);
  const InterleavedTurns turns = TakeTurns(shape);
  const int total = static_cast<int>(turns.chunk.size());
  for (int worker = 0; worker < shape.workers; ++worker) {
    ProgramWriter program(schedule, worker);
    const int warm_up = InterleavedWarmUp(turns, shape, worker, 1);
    for (int turn = 0; turn < warm_up; ++turn) {
      program.Forward(turns.chunk[turn] * shape.workers + worker);
    }
    for (int turn = 0; turn < total; ++turn) {
      if (warm_up + turn < total) {
        program.Forward(turns.chunk[warm_up + turn] * shape.workers + worker);
      }
      program.BackwardInput((shape.chunks - 1 - turns.chunk[turn]) * shape.workers + worker);
      if (turn >= worker) program.OldestBackwardWeight();
    }
    program.AllBackwardWeights();
  }
  return schedule;
}

}  // namespace siphon
