#include "launch/commands/plan_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launch/commands/plan_explain.h"
#include "launch/commands/plan_limits.h"
#include "launch/commands/plan_map.h"
#include "launch/commands/plan_tables.h"
#include "launch/output/text_table.h"

namespace siphon {
namespace {

constexpr double kNanosPerSecond = 1e9;

std::string Line(absl::string_view name, absl::string_view value) {
  return absl::StrFormat("%-18s%s\n", name, value);
}

std::string Headline(const StudiedPlan& studied) {
  const PlanText& plan = studied.plan;
  std::string text = absl::StrFormat(
      "%s, %d layers, %.3g million parameters; %s on %d workers, %d microbatches of %d\n",
      plan.model, studied.problem.profile.layers.size(),
      static_cast<double>(studied.parameters) / 1e6, plan.schedule, studied.kept.peak.size(),
      plan.training.microbatches, plan.microbatch);
  const std::string& server = studied.problem.topology.name;
  absl::StrAppend(&text, "costs ", plan.costs, server.empty() ? "" : ", on ", server, "\n");
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
  if (studied.step.has_value()) {
    absl::StrAppend(&text, "; the plan is at most ", PercentText(GapOf(studied)),
                    " above the best one");
  }
  return text;
}

std::string StepText(const StudiedPlan& studied, PlanDetail detail) {
  const SimulatedStep& step = studied.shown();
  std::string text =
      Line("step time", absl::StrFormat("%s  (%.4g tokens/s)%s", FormatNanos(step.step_time),
                                        TokensPerSecond(studied),
                                        studied.step.has_value() ? "" : "  with everything kept"));
  if (studied.step.has_value() && step.step_time > studied.kept.step_time) {
    absl::StrAppend(&text,
                    Line("with more memory", absl::StrCat(FormatNanos(studied.kept.step_time),
                                                          "  if everything could be kept")));
  }
  absl::StrAppend(&text, Line("lower bound", BoundText(studied)));
  absl::StrAppend(&text, Line("bubble", absl::StrCat(PercentText(step.bubble_fraction),
                                                     "  idle time of all workers")));
  if (studied.step.has_value()) {
    absl::StrAppend(&text, Line("limited by", DiagnosisText(Diagnose(step, studied.kept), step)));
  }
  if (detail == PlanDetail::kGroups && studied.map.has_value()) {
    absl::StrAppend(&text, Line("device map", MapText(*studied.map)));
  }
  if (!studied.settings.empty()) {
    absl::StrAppend(&text, Line("changes the job", SettingsText(studied.settings)));
  }
  return text + Line("planned in", FormatNanos(studied.planning_time));
}

std::string TableText(const PageTable& table) {
  if (table.rows.empty()) return "";
  return absl::StrCat("\n", table.title, table.title.empty() ? "" : "\n",
                      TextTable(table.header, table.rows));
}

std::string ExplainText(const PlanReport& report) {
  std::string text;
  if (report.detail == PlanDetail::kSummary) return text;
  for (const PageTable& table : ExplainTables(report.plan)) {
    absl::StrAppend(&text, TableText(table));
  }
  return text;
}

std::string FixesText(const std::vector<PlanFix>& fixes) {
  std::string text;
  for (const PlanFix& fix : fixes) {
    absl::StrAppend(
        &text, &fix == fixes.data() ? "smallest change that fits: " : "or:  ", FixText(fix), "\n");
  }
  return text;
}

}  // namespace

double GapOf(const StudiedPlan& plan) {
  const auto bound = static_cast<double>(plan.bound.step_time.value);
  if (bound == 0) return 0;
  return (static_cast<double>(plan.shown().step_time.value) - bound) / bound;
}

double TokensPerSecond(const StudiedPlan& plan) {
  const auto time = static_cast<double>(plan.shown().step_time.value);
  if (time == 0) return 0;
  return static_cast<double>(plan.tokens * plan.problem.schedule.replicas) * kNanosPerSecond / time;
}

std::string PlanReportText(const PlanReport& report) {
  const StudiedPlan& studied = report.plan;
  return absl::StrCat(Headline(studied), Verdict(studied), FixesText(report.fixes), "\n",
                      StepText(studied, report.detail), TableText(WorkerTable(studied)),
                      TableText(ParkingTable(studied)), ExplainText(report),
                      TableText(WhatIfTable(report)));
}

}  // namespace siphon
