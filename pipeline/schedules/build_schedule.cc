#include "pipeline/schedules/build_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pipeline/schedules/builders.h"
#include "planner/status.h"
#include "planner/units.h"

namespace siphon {
namespace {

// Far beyond any real pipeline, and still a few hundred megabytes of actions.
constexpr int64_t kMostCells = 10'000'000;

absl::Status CheckShape(absl::string_view name, const ScheduleShape& shape) {
  if (shape.workers < 1 || shape.chunks < 1 || shape.microbatches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", name, ": ", shape.workers, " workers, ", shape.chunks,
                     " chunks and ", shape.microbatches, " microbatches; each must be at least 1"));
  }
  const absl::StatusOr<int64_t> stages = CheckedProduct(shape.workers, shape.chunks, "stages");
  if (!stages.ok()) return stages.status();
  if (*stages > kMostCells / shape.microbatches) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule ", name, ": ", *stages, " stages times ", shape.microbatches,
                     " microbatches is more than the ", kMostCells, " that a schedule may have"));
  }
  return absl::OkStatus();
}

// An option that the schedule would ignore is a mistake of whoever gave it.
absl::Status CheckOptions(const ScheduleEntry& entry, const ScheduleOptions& options) {
  for (const std::string& given : GivenOptions(options)) {
    const auto& takes = entry.options;
    if (std::find(takes.begin(), takes.end(), given) != takes.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", entry.name, " takes no ", given, "; ",
        entry.options.empty() ? "it has no options"
                              : absl::StrCat("its options: ", absl::StrJoin(entry.options, ", "))));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> GivenOptions(const ScheduleOptions& options) {
  const ScheduleOptions untouched;
  std::vector<std::string> given;
  if (options.in_flight_limit != untouched.in_flight_limit) given.push_back("in_flight");
  if (options.warm_up != untouched.warm_up) given.push_back("warm_up");
  if (options.depth != untouched.depth) given.push_back("depth");
  if (options.forward_pack != untouched.forward_pack) given.push_back("forward_pack");
  if (options.backward_pack != untouched.backward_pack) given.push_back("backward_pack");
  if (options.microbatch_group != untouched.microbatch_group) given.push_back("microbatch_group");
  if (options.backward_group != untouched.backward_group) given.push_back("backward_group");
  if (options.csv != untouched.csv) given.push_back("csv");
  return given;
}

const std::vector<ScheduleEntry>& ScheduleRegistry() {
  static const auto* const registry = new std::vector<ScheduleEntry>{
#define SIPHON_SCHEDULE(name, builder, chunks, update, options, summary) \
  {name,    chunks,  WeightUpdate::update,                               \
   summary, builder, absl::StrSplit(options, ' ', absl::SkipEmpty())},
#include "pipeline/schedules/schedules.def"
#undef SIPHON_SCHEDULE
  };
  return *registry;
}

absl::StatusOr<ScheduleEntry> FindSchedule(absl::string_view name) {
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    if (entry.name == name) return entry;
  }
  const auto append_name = [](std::string* out, const ScheduleEntry& entry) {
    out->append(entry.name);
  };
  return absl::NotFoundError(absl::StrCat("unknown schedule '", name, "'; known: ",
                                          absl::StrJoin(ScheduleRegistry(), ", ", append_name)));
}

absl::StatusOr<Schedule> BuildSchedule(absl::string_view name, const ScheduleShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(const ScheduleEntry entry, FindSchedule(name));
  SIPHON_RETURN_IF_ERROR(CheckShape(name, shape));
  SIPHON_RETURN_IF_ERROR(CheckOptions(entry, shape.options));
  return entry.build(shape);
}

Schedule BuildForwardOnly(const Schedule& like, int microbatches) {
  Schedule schedule;
  schedule.microbatches = microbatches;
  schedule.worker_of_stage = like.worker_of_stage;
  schedule.programs.resize(like.programs.size());
  // Microbatch by microbatch: a worker with several stages then always waits for the oldest one, so
  // that no send can wait for a receive that stands behind it.
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    for (int stage = 0; stage < StageCount(like); ++stage) {
      schedule.programs[like.worker_of_stage[stage].value].push_back(
          {StageId(stage), ActionKind::kForward, MicrobatchId(microbatch)});
    }
  }
  return schedule;
}

}  // namespace siphon
