#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_REASONS_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_REASONS_H_

#include <string>

#include "launch/commands/plan_explain.h"
#include "launch/commands/plan_study.h"
#include "planner/ids.h"
#include "planner/units.h"

namespace siphon {

// What speaks for a group's choice, and then the other ways: what each takes, how much of that is
// hidden while nobody needs the group or exposed, or why it is no way. "computing them again takes
// 1.00 ms of a microbatch; else host_swap 3.00 ms exposed by 1.00 ms, keep up to 4.00 MiB (1.00 MiB
// free)". Requires: all of the group but `why`; the plan fits.
std::string ReasonOf(const ExplainedGroup& group, const StudiedPlan& studied, WorkerId worker);

// Why so many bytes of the device cannot be with devices that it has links to; empty: they can.
// Requires: the plan fits.
std::string NoRoomWithPeers(const StudiedPlan& studied, DeviceId device, Bytes bytes);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_REASONS_H_
