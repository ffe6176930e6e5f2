#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/commands/plan_compare.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"
#include "planner/units.h"

namespace siphon {

// The same job with more settings.
struct WhatIf {
  std::string setting;  // as it was asked for
  StudiedPlan plan;
  std::optional<PlanFix> fix;  // the smallest, where it does not fit
};

// The settings of a --what-if, each "section.key=value": a comma begins the next one where
// "section.key=" follows it, so that lists may have commas.
std::vector<std::string> SettingsOfWhatIf(absl::string_view what_if);

// Whether each tensor group's choice is explained.
enum class PlanDetail { kSummary, kGroups };

// A plan as `siphon plan` shows it.
struct PlanReport {
  PlanDetail detail = PlanDetail::kSummary;
  StudiedPlan plan;
  std::vector<PlanFix> fixes;                     // where it does not fit
  std::vector<std::vector<std::string>> in_vain;  // TriedFixes::in_vain
  std::vector<WhatIf> what_ifs;
  std::vector<ComparedPlan> comparison;  // where it was asked for
  std::optional<StudiedPlan> faster;     // by a schedule that is not the job's, where one was tried
};

// Whether `auto` is far from its bound with weights that leave: with a schedule like 1F1B they do
// so for every microbatch, where Harmony's takes many through the same layers before the next ones.
bool MayBeSlowForItsSchedule(const StudiedPlan& plan);

// What is odd about what was asked for, in one line: a capacity that no device of the server has,
// of a job that need not run there. Else empty.
std::string RemarkOn(const StudiedPlan& plan);

// For people: whether it fits, the step's time and what limits it, the bound, a table of workers,
// who lends what to whom, the fixes, the plans side by side.
std::string PlanReportText(const PlanReport& report);

// One object with the contract's fields (of a plan that does not fit, peaks are those of keeping
// everything, and what a step takes is null); besides strategy, costs, limit, host_peak_bytes,
// other_peaks[] (of drives, and of devices without a worker), map_search (null where no device map
// was searched), reason (of a misfit), remark (RemarkOn, or null), fixes[] (with device_bytes where
// devices must have so much, else null), tried_in_vain[] (lists of settings), what_if[], compare[],
// faster (null where none is known) and explain[] by stage.
std::string PlanReportJson(const PlanReport& report);

// Bytes that a worker's device has parked with another one, what passes as often as it is away at
// once.
struct ParkedBytes {
  int worker = 0;
  DeviceId owner;
  DeviceId lender;
  Bytes bytes;
  friend bool operator==(const ParkedBytes&, const ParkedBytes&) = default;
};
// Ascending by worker, then by lender.
std::vector<ParkedBytes> ParkedBytesOf(const PlanText& plan);

// (step time - bound) / bound; none where nothing fits, or there is no bound.
std::optional<double> GapOf(const StudiedPlan& plan);
// Of a step above a bound; none where that is 0.
std::optional<double> GapOf(Nanos step, Nanos bound);
// None where nothing fits.
std::optional<double> TokensPerSecond(const StudiedPlan& plan);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_
