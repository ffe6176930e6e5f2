#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "launch/commands/plan_fixes.h"
#include "launch/commands/plan_study.h"

namespace siphon {

// The same job with one more setting.
struct WhatIf {
  std::string setting;
  StudiedPlan plan;
};

// Whether each tensor group's choice is explained.
enum class PlanDetail { kSummary, kGroups };

// A plan as `siphon plan` shows it.
struct PlanReport {
  PlanDetail detail = PlanDetail::kSummary;
  StudiedPlan plan;
  std::vector<PlanFix> fixes;  // where it does not fit
  std::vector<WhatIf> what_ifs;
};

// For people: whether it fits, the step's time and what limits it, the bound, a table of workers,
// who lends what to whom, the fixes, the plans side by side.
std::string PlanReportText(const PlanReport& report);

// One object with the contract's fields (in a plan that does not fit, times and peaks are those of
// keeping everything); besides strategy, costs, limit, map_search (null where no device map was
// searched), reason (of a misfit), fixes[], what_if[] and explain[] by stage.
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

// (step time - bound) / bound; 0 where there is no bound.
double GapOf(const StudiedPlan& plan);
double TokensPerSecond(const StudiedPlan& plan);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_REPORT_H_
