#include "launch/commands/plan_report.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "launch/commands/parameter_count.h"
#include "launch/commands/plan_explain.h"
#include "launch/commands/plan_limits.h"
#include "launch/commands/plan_map.h"
#include "launch/commands/plan_tables.h"
#include "launch/output/figure_text.h"
#include "launch/output/text_table.h"
#include "planner/moves_weights.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

std::string Line(absl::string_view name, absl::string_view value) {
  return absl::StrFormat("%-18s%s\n", name, value);
}

std::string Headline(const StudiedPlan& studied) {
  const PlanText& plan = studied.plan;
  std::string text = absl::StrFormat(
      "%s, %s, %s; %s on %s, %s of %d\n", plan.model,
      CountText(static_cast<int64_t>(studied.problem.profile.layers.size()), "layer"),
      ParameterCountText(studied.parameters), plan.schedule,
      CountText(static_cast<int64_t>(studied.kept.peak.size()), "worker"),
      CountText(plan.training.microbatches, "microbatch"), plan.microbatch);
  const std::string& server = studied.problem.topology.name;
  absl::StrAppend(&text, "costs ", plan.costs, server.empty() ? "" : ", on ", server, "\n");
  if (const std::string remark = RemarkOn(studied); !remark.empty()) {
    absl::StrAppend(&text, remark, "\n");
  }
  return text;
}

std::string Verdict(const StudiedPlan& studied) {
  if (!studied.step.has_value()) return absl::StrCat("does not fit: ", studied.misfit, "\n");
  if (studied.problem.capacity.empty()) {
    return absl::StrCat("fits: nothing limits the workers' memory; strategy ", studied.strategy,
                        "\n");
  }
  return absl::StrCat("fits: every worker stays within its capacity; strategy ", studied.strategy,
                      "\n");
}

std::string BoundText(const StudiedPlan& studied) {
  if (studied.bound.cannot_fit.has_value()) {
    return absl::StrCat("no plan fits: ", *studied.bound.cannot_fit);
  }
  std::string text =
      absl::StrCat(FormatNanos(studied.bound.step_time), "  by ", studied.bound.reason);
  if (const std::optional<double> gap = GapOf(studied)) {
    absl::StrAppend(&text, "; the plan is at most ", FormatPercent(*gap), " above the best one");
  }
  return text;
}

// Of a plan that fits.
std::string PlannedText(const StudiedPlan& studied) {
  const SimulatedStep& step = *studied.step;
  std::string text = Line(
      "step time", absl::StrCat(FormatNanos(step.step_time), "  (",
                                FigureText(TokensPerSecond(studied).value_or(0)), " tokens/s)"));
  if (step.step_time > studied.kept.step_time) {
    absl::StrAppend(&text,
                    Line("with more memory", absl::StrCat(FormatNanos(studied.kept.step_time),
                                                          "  if everything could be kept")));
  }
  absl::StrAppend(&text, Line("lower bound", BoundText(studied)));
  absl::StrAppend(&text, Line("bubble", absl::StrCat(FormatPercent(step.bubble_fraction),
                                                     "  idle time of all workers")));
  absl::StrAppend(&text, Line("limited by", DiagnosisText(DiagnosePlan(studied), step)));
  return text;
}

std::string StepText(const StudiedPlan& studied, PlanDetail detail) {
  std::string text =
      studied.step.has_value()
          ? PlannedText(studied)
          : absl::StrCat(Line("with more memory", absl::StrCat(FormatNanos(studied.kept.step_time),
                                                               "  if everything could be kept")),
                         Line("lower bound", BoundText(studied)));
  if (detail == PlanDetail::kGroups && studied.map.has_value()) {
    absl::StrAppend(&text, Line("device map", MapText(*studied.map)));
  }
  if (!studied.settings.empty()) {
    absl::StrAppend(&text, Line("changes the job", SettingsText(studied.settings)));
  }
  const bool quick = studied.problem.effort == kLeastEffort;
  return text + Line("planned in", absl::StrCat(FormatNanos(studied.planning_time),
                                                quick ? "  by a short search (--quick)" : ""));
}

std::string FasterText(const PlanReport& report) {
  if (!report.faster.has_value()) return "";
  const StudiedPlan& faster = *report.faster;
  return Line("faster", absl::StrCat(FormatNanos(faster.step->step_time), "  with --strategy ",
                                     faster.strategy,
                                     ", which changes the job: ", SettingsText(faster.settings)));
}

std::string TableText(const PageTable& table, LastColumn last = LastColumn::kNumbers) {
  if (table.rows.empty()) return "";
  return absl::StrCat("\n", table.title, table.title.empty() ? "" : "\n",
                      TextTable(table.header, table.rows, last));
}

std::string ExplainText(const PlanReport& report) {
  std::string text;
  if (report.detail == PlanDetail::kSummary) return text;
  for (const PageTable& table : ExplainTables(report.plan)) {
    absl::StrAppend(&text, TableText(table, LastColumn::kWords));
  }
  return text;
}

// Why columns do not fit.
std::string WhatIfText(const std::vector<WhatIf>& what_ifs) {
  std::string text;
  for (const WhatIf& what_if : what_ifs) {
    if (what_if.plan.step.has_value()) continue;
    absl::StrAppend(&text, "\n", what_if.setting, " does not fit: ", what_if.plan.misfit, "\n");
    if (what_if.fix.has_value()) {
      absl::StrAppend(&text, "smallest change that fits beside it: ", FixText(*what_if.fix), "\n");
    }
  }
  return text;
}

// "section.key=".
bool BeginsSetting(absl::string_view part) {
  const absl::string_view key = part.substr(0, part.find('='));
  const size_t point = key.find('.');
  const auto in_word = [](char letter) { return absl::ascii_islower(letter) || letter == '_'; };
  return key.size() < part.size() && point != absl::string_view::npos && point > 0 &&
         absl::c_all_of(key.substr(0, point), in_word) && point + 1 < key.size() &&
         absl::c_all_of(key.substr(point + 1), in_word);
}

}  // namespace

std::optional<double> GapOf(const StudiedPlan& plan) {
  if (!plan.step.has_value()) return std::nullopt;
  return GapOf(plan.step->step_time, plan.bound.step_time);
}

std::optional<double> GapOf(Nanos step, Nanos bound) {
  if (bound == Nanos(0)) return std::nullopt;
  const auto least = static_cast<double>(bound.value);
  return (static_cast<double>(step.value) - least) / least;
}

std::optional<double> TokensPerSecond(const StudiedPlan& plan) {
  if (!plan.step.has_value() || plan.step->step_time == Nanos(0)) return std::nullopt;
  return static_cast<double>(plan.tokens) * kNanosPerSecond /
         static_cast<double>(plan.step->step_time.value);
}

std::vector<std::string> SettingsOfWhatIf(absl::string_view what_if) {
  std::vector<std::string> settings;
  for (const absl::string_view part : absl::StrSplit(what_if, ',')) {
    if (settings.empty() || BeginsSetting(part)) {
      settings.emplace_back(part);
    } else {
      absl::StrAppend(&settings.back(), ",", part);
    }
  }
  return settings;
}

std::string RemarkOn(const StudiedPlan& plan) {
  const Bytes asked = LargestCapacity(plan.job);
  if (plan.device_memory == Bytes(0) || asked <= plan.device_memory) return "";
  return absl::StrCat("planned as if devices had memory.capacity, ", FormatBytes(asked),
                      ": the largest there has ", FormatBytes(plan.device_memory));
}

bool MayBeSlowForItsSchedule(const StudiedPlan& plan) {
  constexpr double kFar = 0.2;
  if (plan.strategy != "auto" || GapOf(plan).value_or(0) < kFar) return false;
  return absl::c_any_of(plan.plan.memory.stages, [](const StagePlan& stage) {
    return absl::c_any_of(stage.groups, MovesWeights);
  });
}

std::string PlanReportText(const PlanReport& report) {
  const StudiedPlan& studied = report.plan;
  return absl::StrCat(
      Headline(studied), Verdict(studied), FixesText({report.fixes, report.in_vain}), "\n",
      StepText(studied, report.detail), FasterText(report), TableText(WorkerTable(studied)),
      TableText(ParkingTable(studied)), ExplainText(report), TableText(WhatIfTable(report)),
      WhatIfText(report.what_ifs),
      TableText(ComparisonTable(report.comparison), LastColumn::kWords));
}

}  // namespace siphon
