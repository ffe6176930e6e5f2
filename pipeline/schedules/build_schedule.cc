#include "pipeline/schedules/build_schedule.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

}  // namespace

const std::vector<ScheduleEntry>& ScheduleRegistry() {
  static const auto* const registry = new std::vector<ScheduleEntry>{
#define SIPHON_SCHEDULE(name, builder, chunks, update, summary) \
  {name, chunks, WeightUpdate::update, summary, builder},
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

absl::StatusOr<Schedule> OneStageAWorker(const ScheduleShape& shape, absl::string_view name) {
  if (shape.chunks != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", name, " takes one stage a worker, not ", shape.chunks, " chunks"));
  }
  Schedule schedule;
  schedule.microbatches = shape.microbatches;
  schedule.programs.resize(shape.workers);
  for (int worker = 0; worker < shape.workers; ++worker) {
    schedule.worker_of_stage.push_back(WorkerId(worker));
  }
  return schedule;
}

}  // namespace siphon
