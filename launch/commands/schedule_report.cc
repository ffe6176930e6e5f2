#include "launch/commands/schedule_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/commands/step_grid_text.h"
#include "launch/output/text_table.h"
#include "planner/lower_schedule.h"
#include "planner/marked_grid.h"
#include "planner/status.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

std::string Count(int number, absl::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

absl::string_view UpdateName(WeightUpdate update) {
  switch (update) {
    case WeightUpdate::kAtStepEnd:
      return "at_step_end";
    case WeightUpdate::kJustInTime:
      return "just_in_time";
    case WeightUpdate::kAsynchronous:
      return "asynchronous";
  }
  return "unknown";
}

bool HasSeveralVersions(const ScheduleReport& report) {
  return std::any_of(report.weight_versions.begin(), report.weight_versions.end(),
                     [](int versions) { return versions > 1; });
}

std::string Headline(const ScheduleReport& report) {
  const Schedule& schedule = report.shown;
  std::string text = absl::StrCat(report.entry.name, ": ", report.entry.summary, "\n",
                                  Count(WorkerCount(schedule), "worker"), ", ",
                                  Count(StageCount(schedule), "stage"), ", ", schedule.microbatches,
                                  schedule.microbatches == 1 ? " microbatch" : " microbatches");
  if (schedule.replicas > 1) {
    absl::StrAppend(&text, "; ", schedule.replicas, " replicas, of which this is one");
  }
  return text;
}

std::string WorkerTable(const ScheduleReport& report) {
  const std::vector<int> idle = InnerIdle(report.grid);
  std::vector<std::string> header = {"worker", "stages", "inner idle", "peak live activations"};
  if (HasSeveralVersions(report)) header.push_back("weight versions");
  std::vector<std::vector<std::string>> rows;
  for (int worker = 0; worker < WorkerCount(report.shown); ++worker) {
    std::vector<int> stages;
    std::vector<int> versions;
    for (const StageId stage : StagesOf(report.shown, WorkerId(worker))) {
      stages.push_back(stage.value);
      versions.push_back(report.weight_versions[stage.value]);
    }
    rows.push_back({absl::StrCat(worker), absl::StrJoin(stages, " "), absl::StrCat(idle[worker]),
                    absl::StrCat(report.peak_live[worker])});
    if (HasSeveralVersions(report)) rows.back().push_back(absl::StrJoin(versions, " "));
  }
  return TextTable(header, rows);
}

nlohmann::ordered_json FiguresJson(const ScheduleReport& report) {
  const Schedule& schedule = report.shown;
  std::vector<int> worker_of_stage;
  for (const WorkerId worker : schedule.worker_of_stage) worker_of_stage.push_back(worker.value);
  nlohmann::ordered_json json = {{"name", report.entry.name},
                                 {"workers", WorkerCount(schedule)},
                                 {"stages", StageCount(schedule)},
                                 {"microbatches", schedule.microbatches},
                                 {"replicas", schedule.replicas},
                                 {"weight_update", UpdateName(report.entry.update)},
                                 {"worker_of_stage", worker_of_stage},
                                 {"steps", report.grid.steps},
                                 {"bubble_fraction", BubbleFraction(report.grid)},
                                 {"inner_idle_fraction", InnerIdleFraction(report.grid)},
                                 {"inner_idle_steps", InnerIdle(report.grid)},
                                 {"peak_live_activations", report.peak_live},
                                 {"weight_versions", report.weight_versions}};
  if (report.lowered_steps > 0) json["steps_with_messages"] = report.lowered_steps;
  return json;
}

}  // namespace

absl::StatusOr<ScheduleReport> ReportSchedule(const ScheduleEntry& entry,
                                              const ScheduleShape& shape, ShownParts parts) {
  SIPHON_ASSIGN_OR_RETURN(Schedule schedule, BuildSchedule(entry.name, shape));
  if (parts.backwards == ShownBackwards::kMerged) schedule = MergeBackward(std::move(schedule));
  SIPHON_RETURN_IF_ERROR(ValidateSchedule(schedule, SchedulePurpose::kTraining));
  ScheduleReport report{.entry = entry};
  SIPHON_ASSIGN_OR_RETURN(report.grid, DrawStepGrid(schedule));
  report.peak_live = PeakLiveActivations(schedule);
  report.weight_versions = PeakWeightVersions(schedule);
  if (parts.messages == ShownMessages::kAll) {
    SIPHON_ASSIGN_OR_RETURN(schedule, InsertCommunication(std::move(schedule)));
    SIPHON_ASSIGN_OR_RETURN(report.lowered_steps, CountSteps(schedule));
  }
  report.shown = std::move(schedule);
  return report;
}

std::string ScheduleReportText(const ScheduleReport& report, int columns, TextColors colors) {
  std::string text = absl::StrCat(Headline(report), "\n\n",
                                  StepGridText(report.shown, report.grid, columns, colors), "\n");
  absl::StrAppend(&text, "steps                ", report.grid.steps,
                  "  each F, I and W of a stage takes one, each B two; messages are free\n");
  if (report.lowered_steps > 0) {
    absl::StrAppend(&text, "steps with messages  ", report.lowered_steps,
                    "  every action takes one, messages too\n");
  }
  absl::StrAppend(&text, "bubble_fraction      ", FormatPercent(BubbleFraction(report.grid)),
                  "  idle time of all workers, fill and drain included\n");
  absl::StrAppend(&text, "inner_idle_fraction  ", FormatPercent(InnerIdleFraction(report.grid)),
                  "  of it between a worker's own first and last action\n\n", WorkerTable(report));
  if (report.lowered_steps == 0) return text;
  absl::StrAppend(&text, "\nprograms with messages\n");
  for (int worker = 0; worker < WorkerCount(report.shown); ++worker) {
    absl::StrAppend(&text, "worker ", worker, ": ",
                    absl::StrJoin(CellTexts(report.shown.programs[worker]), " "), "\n");
  }
  return text;
}

std::string ScheduleReportJson(const ScheduleReport& report) {
  nlohmann::ordered_json json = FiguresJson(report);
  json["programs"] = nlohmann::ordered_json::array();
  for (const std::vector<Action>& program : report.shown.programs) {
    json["programs"].push_back(CellTexts(program));
  }
  return json.dump(2) + "\n";
}

std::string ScheduleOverviewText(const std::vector<ScheduleOverviewRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  std::string refused;
  for (const ScheduleOverviewRow& row : rows) {
    if (!row.report.ok()) {
      absl::StrAppend(&refused, "  ", SentenceOf(row.report.status()), "\n");
      continue;
    }
    const ScheduleReport& report = *row.report;
    const auto [least, most] =
        std::minmax_element(report.peak_live.begin(), report.peak_live.end());
    cells.push_back({row.entry.name, absl::StrCat(StageCount(report.shown)),
                     absl::StrCat(report.grid.steps), FormatPercent(BubbleFraction(report.grid)),
                     FormatPercent(InnerIdleFraction(report.grid)),
                     *least == *most ? absl::StrCat(*most) : absl::StrCat(*least, " to ", *most),
                     absl::StrCat(*std::max_element(report.weight_versions.begin(),
                                                    report.weight_versions.end()))});
  }
  std::string text = TextTable({"schedule", "stages", "steps", "bubble", "inner idle",
                                "live activations", "weight versions"},
                               cells);
  if (!refused.empty()) absl::StrAppend(&text, "\nnot in this shape:\n", refused);
  absl::StrAppend(&text, "\n");
  size_t longest = 0;
  for (const ScheduleOverviewRow& row : rows) longest = std::max(longest, row.entry.name.size());
  for (const ScheduleOverviewRow& row : rows) {
    absl::StrAppend(&text, row.entry.name, std::string(longest + 2 - row.entry.name.size(), ' '),
                    row.entry.summary, "\n");
  }
  return text;
}

std::string ScheduleOverviewJson(const std::vector<ScheduleOverviewRow>& rows) {
  nlohmann::ordered_json json = {{"schedules", nlohmann::ordered_json::array()}};
  for (const ScheduleOverviewRow& row : rows) {
    nlohmann::ordered_json one =
        row.report.ok() ? FiguresJson(*row.report)
                        : nlohmann::ordered_json{{"name", row.entry.name},
                                                 {"refused", SentenceOf(row.report.status())}};
    one["summary"] = row.entry.summary;
    one["options"] = row.entry.options;
    json["schedules"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

}  // namespace siphon
