#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/v_block.h"
#include "planner/status.h"

namespace siphon {

// V-Min, Qi et al. 2024, arXiv:2405.15362, section 3.2: a microbatch goes from worker to worker
// without delay, so its activations live as short as they can: (P + 4) / 3 microbatches of the
// model's 1 / P, rounded down. Passes would meet in one step when 3 divides P; then the first I
// waits.
absl::StatusOr<Schedule> BuildVMin(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, PlaceInV(shape, "v_min"));
  constexpr std::array<int, 2> kNoDelay = {1, 1};
  WriteVBlocks(schedule, {.link = {kNoDelay, kNoDelay, kNoDelay, kNoDelay},
                          .turn = shape.workers % 3 == 0 ? 2 : 0});
  return schedule;
}

}  // namespace siphon
