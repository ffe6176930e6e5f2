#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/interleaved_turns.h"
#include "pipeline/schedules/program_writer.h"

namespace siphon {

// Interleaved 1F1B, Narayanan et al. 2021, arXiv:2104.04473, figure 4 (bottom).
absl::StatusOr<Schedule> BuildInterleaved1F1B(const ScheduleShape& shape) {
  Schedule schedule = PlaceInLoop(shape);
  const InterleavedTurns turns = TakeTurns(shape);
  const int total = static_cast<int>(turns.chunk.size());
  for (int worker = 0; worker < shape.workers; ++worker) {
    ProgramWriter program(schedule, worker);
    // A message down and one back up for each worker behind.
    const int warm_up = InterleavedWarmUp(turns, shape, worker, 2);
    for (int turn = 0; turn < warm_up; ++turn) {
      program.Forward(turns.chunk[turn] * shape.workers + worker);
    }
    for (int turn = 0; turn < total; ++turn) {
      if (warm_up + turn < total) {
        program.Forward(turns.chunk[warm_up + turn] * shape.workers + worker);
      }
      program.Backward((shape.chunks - 1 - turns.chunk[turn]) * shape.workers + worker);
    }
  }
  return schedule;
}

}  // namespace siphon
