#include "absl/strings/str_cat.h"
#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/program_writer.h"
#include "pipeline/schedules/warm_up_schedule.h"
#include "planner/status.h"

namespace siphon {

// PipeDream-2BW, Narayanan et al. 2021, arXiv:2006.09503, section 3.1: 1F1B without a flush and
// with an update after each group of microbatches, of as many as there are stages or more. A group
// runs, forward and backward and on every stage, with the weights from before the update that its
// predecessor makes: W(t + 1) = W(t) - rate * gradient(W(t - 1)). So two versions are enough.
absl::StatusOr<Schedule> BuildPipeDream2BW(const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, OneStageAWorker(shape, "pipedream_2bw"));
  const int group =
      shape.options.microbatch_group == 0 ? shape.workers : shape.options.microbatch_group;
  if (group < shape.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule pipedream_2bw: microbatch_group is ", group,
                     ", but two weight versions need at "
                     "least as many microbatches between two updates as there are stages, ",
                     shape.workers));
  }
  schedule.weight_rule = WeightRule::kOneGroupBehind;
  WriteWarmUpSchedule(
      schedule, [&](int stage) { return shape.workers - stage; },
      [&](ProgramWriter& program, int stage) {
        const int done = program.backwards(stage);
        if (done % group == 0 || done == shape.microbatches) program.Update(stage);
      });
  return schedule;
}

}  // namespace siphon
