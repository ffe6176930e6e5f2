#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/program_writer.h"
#include "pipeline/schedules/warm_up_schedule.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckDepth(const std::vector<int>& depth, int workers) {
  if (depth.size() != static_cast<size_t>(workers)) {
    return absl::InvalidArgumentError(absl::StrCat("schedule pipedream: depth has ", depth.size(),
                                                   " numbers for ", workers,
                                                   " stages; give one for each stage"));
  }
  for (size_t stage = 0; stage < depth.size(); ++stage) {
    if (depth[stage] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule pipedream: depth of stage ", stage, " is ", depth[stage],
                       "; it is the number of minibatches in flight there, at least 1"));
    }
    if (stage > 0 && depth[stage] > depth[stage - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule pipedream: depth of stage ", stage, " is ", depth[stage],
                       ", but stage ", stage - 1, " before it lets only ", depth[stage - 1],
                       " minibatches in, so both would wait for ever; depths must not grow"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// PipeDream, Narayanan et al. 2019 (SOSP), section 3.2: 1F1B without a flush. What is called a
// microbatch elsewhere is a whole minibatch here: every backward is followed by an update, and its
// forward has stashed the weights that it goes back to. As many weight versions as minibatches in
// flight.
absl::StatusOr<Schedule> BuildPipeDream(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "pipedream"));
  const std::vector<int>& depth = shape.options.depth;
  if (!depth.empty()) SIPHON_RETURN_IF_ERROR(CheckDepth(depth, shape.workers));
  WriteWarmUpSchedule(
      schedule, [&](int stage) { return depth.empty() ? shape.workers - stage : depth[stage]; },
      [](ProgramWriter& program, int stage) { program.Update(stage); });
  return schedule;
}

}  // namespace siphon
