#ifndef SIPHON_PIPELINE_SCHEDULES_INTERLEAVED_TURNS_H_
#define SIPHON_PIPELINE_SCHEDULES_INTERLEAVED_TURNS_H_

#include <vector>

#include "planner/schedule.h"

namespace siphon {

// How a worker with several chunks goes through them (Narayanan et al. 2021, arXiv:2104.04473,
// section 2.2): the microbatches form rounds of about P, and a round goes through one chunk after
// the other.
//
// The paper asks for a multiple of P microbatches; torch.distributed.pipelining for a multiple of
// the number of rounds, max(1, m / P). Here rounds may differ in size by one, the larger first.
struct InterleavedTurns {
  // Chunk of each forward turn, chunks * microbatches of them. Backward turns are the same from the
  // last chunk: chunks - 1 - chunk[turn].
  std::vector<int> chunk;
  int largest_round = 0;  // microbatches
};

InterleavedTurns TakeTurns(const ScheduleShape& shape);

// Forward turns of a worker before its first backward turn: every chunk but the last for the first
// round, and `per_worker_behind` more for each worker behind this one.
int InterleavedWarmUp(const InterleavedTurns& turns, const ScheduleShape& shape, int worker,
                      int per_worker_behind);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_INTERLEAVED_TURNS_H_
