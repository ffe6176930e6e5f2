#ifndef SIPHON_PIPELINE_SCHEDULES_HARMONY_PACKS_H_
#define SIPHON_PIPELINE_SCHEDULES_HARMONY_PACKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// Harmony (Li et al. 2021, HotOS) runs packs of neighbouring stages as one: forward_pack of them
// forward, backward_pack backward. A group of microbatches goes through a pack before the next pack
// begins, microbatch_group forward and backward_group backward, so that its weights are needed once
// a group; a stage is updated just in time, right after its last backward.

// Errors: InvalidArgument for a pack or a group below 1, or larger than what there is.
absl::Status CheckHarmonyOptions(const ScheduleShape& shape, absl::string_view name, int stages);

// Writes the programs of all workers: forwards group by group, then backwards group by group. The
// last group of either has what is left; gradients add up in ascending order of microbatches.
// Requires: the stages of a pack are all on one worker.
void WriteHarmonyPacks(Schedule& schedule, const ScheduleOptions& options);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_HARMONY_PACKS_H_
