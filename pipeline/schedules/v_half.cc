#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/v_block.h"
#include "planner/status.h"

namespace siphon {

// V-Half, Qi et al. 2024, arXiv:2405.15362, section 3.2: one and a half steps from worker to
// worker, on average, so that activations live half as long as in ZB-V: (P + 2) / 2 microbatches of
// the model's 1 / P, rounded down. The paper gives the average; links of 2 and 1 steps in turn, as
// here, meet it, and the orders were chosen by search: no two passes in one step, and of these the
// shortest bubble, 3 P - 5 steps for even P and 3 P - 4 for odd.
absl::StatusOr<Schedule> BuildVHalf(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, PlaceInV(shape, "v_half"));
  constexpr std::array<int, 2> kLongFirst = {2, 1};
  constexpr std::array<int, 2> kShortFirst = {1, 2};
  if (shape.workers % 2 == 0) {
    WriteVBlocks(schedule, {.link = {kLongFirst, kShortFirst, kLongFirst, kLongFirst}, .turn = 3});
  } else {
    WriteVBlocks(schedule, {.link = {kLongFirst, kLongFirst, kLongFirst, kLongFirst}});
  }
  return schedule;
}

}  // namespace siphon
