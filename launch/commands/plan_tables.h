#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_TABLES_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_TABLES_H_

#include "launch/commands/plan_report.h"
#include "launch/output/timeline_page.h"

namespace siphon {

// The tables of a plan, for text and for pages. One without rows says nothing.

// Device, stages, peak, capacity and what is placed where, a worker a row.
PageTable WorkerTable(const StudiedPlan& studied);
// Who has parked how much with whom; the host in one row for all, and each drive in one for the
// workers that swap to it, with the most that is there at once, and what all groups that go there
// are in sum where that is more.
PageTable ParkingTable(const StudiedPlan& studied);
// The plan and its what-ifs, a column each.
PageTable WhatIfTable(const PlanReport& report);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_TABLES_H_
