#ifndef SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_
#define SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// When a schedule changes the weights.
enum class WeightUpdate {
  kAtStepEnd,     // all workers together, after the last backward
  kJustInTime,    // each stage after its own last backward, inside the program; no global norm
  kAsynchronous,  // in the middle of the stream of microbatches; needs weight versions
};

// One row of the registry, schedules.def. To add a schedule: one file with the builder, one line
// there.
struct ScheduleEntry {
  std::string name;  // "1f1b"
  int chunks = 1;    // stages a worker, unless the job says
  WeightUpdate update = WeightUpdate::kAtStepEnd;
  std::string summary;  // one line for --help
  absl::StatusOr<Schedule> (*build)(const ScheduleShape& shape);
  std::vector<std::string> options;  // the names of ScheduleOptions that it uses, see GivenOptions
};

const std::vector<ScheduleEntry>& ScheduleRegistry();

// Errors: NotFound for an unknown name (known ones listed).
absl::StatusOr<ScheduleEntry> FindSchedule(absl::string_view name);

// The names of the options that are not at their defaults: "in_flight", "warm_up", "depth",
// "forward_pack", "backward_pack", "microbatch_group", "backward_group", "csv".
std::vector<std::string> GivenOptions(const ScheduleOptions& options);

// Compute actions, STEP where a schedule updates just in time, UPDATE where it is asynchronous.
// Errors: NotFound for an unknown name (known ones listed); InvalidArgument for a shape that the
// schedule does not take (says which it takes), and for an option that it does not use.
absl::StatusOr<Schedule> BuildSchedule(absl::string_view name, const ScheduleShape& shape);

// Every microbatch once forward through all stages, placed as in `like`: for validation.
Schedule BuildForwardOnly(const Schedule& like, int microbatches);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_BUILD_SCHEDULE_H_
