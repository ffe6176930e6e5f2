#ifndef SIPHON_PIPELINE_SCHEDULES_V_BLOCK_H_
#define SIPHON_PIPELINE_SCHEDULES_V_BLOCK_H_

#include <array>

#include "planner/schedule.h"

namespace siphon {

// V-shaped schedules with controllable memory (Qi et al. 2024, arXiv:2405.15362, section 3): the
// passes of one microbatch form a building block that repeats every six steps, one step for each of
// F, I and W of the two stages of a worker. How long an activation lives, and so how much memory a
// schedule takes, follows from the delays within the block alone.
//
// A microbatch passes all workers four times: F down to the last worker and up again, I down and up
// again.
struct VBlockDelays {
  // [pass]: steps from one worker to the next, for links 0, 2, 4 .. and for links 1, 3, 5 .. where
  // link w joins workers w and w + 1.
  std::array<std::array<int, 2>, 4> link = {};
  int turn = 0;  // steps that the first I waits behind the last F
};

// Writes the programs of all workers. Each W stands in the first free step behind its I, until the
// worker has no forward left: from there on input gradients go first, and weight gradients fill
// what is left free.
//
// Requires: two stages a worker, in a V; delays that never give a worker two passes in one step.
void WriteVBlocks(Schedule& schedule, const VBlockDelays& delays);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_V_BLOCK_H_
