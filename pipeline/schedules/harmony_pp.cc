#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/harmony_packs.h"
#include "planner/status.h"

namespace siphon {

// Harmony-PP, Li et al. 2021 (HotOS), figure 4: packs wrap around the workers. Where forward and
// backward packs differ, the larger is placed, and the smaller must divide it: a stage has one
// home.
absl::StatusOr<Schedule> BuildHarmonyPP(const ScheduleShape& shape) {
  const int stages = shape.workers * shape.chunks;
  SIPHON_RETURN_IF_ERROR(CheckHarmonyOptions(shape, "harmony_pp", stages));
  const auto [smaller, larger] =
      std::minmax({shape.options.forward_pack, shape.options.backward_pack});
  if (larger % smaller != 0 || shape.chunks % larger != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule harmony_pp: packs of ", shape.options.forward_pack, " stages forward and ",
        shape.options.backward_pack,
        " backward; the smaller must divide the larger, and the larger "
        "the ",
        shape.chunks, " chunks of a worker, so that a stage stays where its weights are"));
  }
  Schedule schedule = PlaceInLoop(shape);
  for (int stage = 0; stage < stages; ++stage) {
    schedule.worker_of_stage[stage] = WorkerId(stage / larger % shape.workers);
  }
  WriteHarmonyPacks(schedule, shape.options);
  return schedule;
}

}  // namespace siphon
