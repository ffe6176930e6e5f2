#ifndef SIPHON_LAUNCH_COMMANDS_SCHEDULE_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_SCHEDULE_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launch/output/timeline_text.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/schedule.h"
#include "planner/step_grid.h"

namespace siphon {

enum class ShownMessages { kNone, kAll };
// Whether an I that its own W follows at once is shown as one B (MergeBackward).
enum class ShownBackwards { kAsBuilt, kMerged };
struct ShownParts {
  ShownMessages messages = ShownMessages::kNone;
  ShownBackwards backwards = ShownBackwards::kAsBuilt;
};

// A schedule and what follows from its shape alone: all stages alike, messages free, every F, I and
// W of a stage one step and every B two.
struct ScheduleReport {
  ScheduleEntry entry;
  Schedule shown;                    // with its messages, if they are asked for
  StepGrid grid;                     // of the compute actions
  int lowered_steps = 0;             // with each action as one step, messages too; 0: not asked for
  std::vector<int> peak_live;        // [worker], (stage, microbatch) pairs
  std::vector<int> weight_versions;  // [stage]
};

// Errors: those of BuildSchedule, ValidateSchedule and InsertCommunication.
absl::StatusOr<ScheduleReport> ReportSchedule(const ScheduleEntry& entry,
                                              const ScheduleShape& shape, ShownParts parts);

std::string ScheduleReportText(const ScheduleReport& report, int columns, TextColors colors);
std::string ScheduleReportJson(const ScheduleReport& report);

// One row a schedule, in the order of the registry; those that do not take the shape say why.
struct ScheduleOverviewRow {
  ScheduleEntry entry;
  absl::StatusOr<ScheduleReport> report;
};
std::string ScheduleOverviewText(const std::vector<ScheduleOverviewRow>& rows);
std::string ScheduleOverviewJson(const std::vector<ScheduleOverviewRow>& rows);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_SCHEDULE_REPORT_H_
