#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_PAGE_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_PAGE_H_

#include "launch/commands/plan_report.h"
#include "launch/output/link_graph_svg.h"
#include "launch/output/timeline_page.h"

namespace siphon {

// The plan as a page: what it takes, the server's links with stages on devices and parked bytes on
// links, the planned step with its memory, memory if everything were kept, the tables, and the
// choice for each tensor group.
TimelinePage PlanPage(const PlanReport& report);

// The drawing of the links alone: devices, then drives that hold anything.
LinkGraph LinkGraphOf(const StudiedPlan& studied);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_PAGE_H_
