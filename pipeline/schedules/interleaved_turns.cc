#include "pipeline/schedules/interleaved_turns.h"

#include <algorithm>
#include <cstddef>

namespace siphon {

InterleavedTurns TakeTurns(const ScheduleShape& shape) {
  const int rounds = std::max(1, shape.microbatches / shape.workers);
  const int size = shape.microbatches / rounds;
  const int larger_rounds = shape.microbatches % rounds;
  InterleavedTurns turns;
  turns.largest_round = larger_rounds > 0 ? size + 1 : size;
  for (int round = 0; round < rounds; ++round) {
    const int microbatches = round < larger_rounds ? size + 1 : size;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      turns.chunk.insert(turns.chunk.end(), static_cast<size_t>(microbatches), chunk);
    }
  }
  return turns;
}

int InterleavedWarmUp(const InterleavedTurns& turns, const ScheduleShape& shape, int worker,
                      int per_worker_behind) {
  const int behind = shape.workers - 1 - worker;
  return std::min((shape.chunks - 1) * turns.largest_round + per_worker_behind * behind,
                  static_cast<int>(turns.chunk.size()));
}

}  // namespace siphon
