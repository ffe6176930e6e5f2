#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/harmony_packs.h"
#include "planner/status.h"

namespace siphon {

// Harmony-DP, Li et al. 2021 (HotOS), section 3: every worker has the whole model and microbatches
// of its own. The schedule is one replica's, on one worker; the model has workers * chunks stages,
// as in Harmony-PP.
absl::StatusOr<Schedule> BuildHarmonyDP(const ScheduleShape& shape) {
  const ScheduleShape replica = {.workers = 1,
                                 .chunks = shape.workers * shape.chunks,
                                 .microbatches = shape.microbatches,
                                 .options = shape.options};
  SIPHON_RETURN_IF_ERROR(CheckHarmonyOptions(replica, "harmony_dp", replica.chunks));
  Schedule schedule = PlaceInLoop(replica);
  schedule.replicas = shape.workers;
  WriteHarmonyPacks(schedule, shape.options);
  return schedule;
}

}  // namespace siphon
