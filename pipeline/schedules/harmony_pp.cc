#include <numeric>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/harmony_packs.h"
#include "planner/status.h"

namespace siphon {

// Harmony-PP, Li et al. 2021 (HotOS), figure 4: packs wrap around the workers. A stage has one
// home, where its weights are, so packs that have a stage in common are on one worker: where
// forward and backward packs differ, blocks wrap around that whole packs of both kinds fill.
absl::StatusOr<Schedule> BuildHarmonyPP(const ScheduleShape& shape) {
  const int stages = shape.workers * shape.chunks;
  SIPHON_RETURN_IF_ERROR(CheckHarmonyOptions(shape, "harmony_pp", stages));
  const int block = std::lcm(shape.options.forward_pack, shape.options.backward_pack);
  if (shape.chunks % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule harmony_pp: packs of ", shape.options.forward_pack, " stages forward and ",
        shape.options.backward_pack, " backward; both must divide the ", shape.chunks,
        " chunks of a worker, so that a stage stays where its weights are"));
  }
  Schedule schedule = PlaceInLoop(shape);
  for (int stage = 0; stage < stages; ++stage) {
    schedule.worker_of_stage[stage] = WorkerId(stage / block % shape.workers);
  }
  WriteHarmonyPacks(schedule, shape.options);
  return schedule;
}

}  // namespace siphon
