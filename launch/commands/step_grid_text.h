#ifndef SIPHON_LAUNCH_COMMANDS_STEP_GRID_TEXT_H_
#define SIPHON_LAUNCH_COMMANDS_STEP_GRID_TEXT_H_

#include <string>

#include "launch/output/timeline_text.h"
#include "planner/schedule.h"
#include "planner/step_grid.h"

namespace siphon {

// The grid of a schedule over whole steps, one line a worker under a scale, folded into blocks of
// at most `columns` letters:
//
//            0              5
//   worker 0 F0 F1 B0### F2 B1###
//   worker 1 .  F0 B0### F1 B1###
//
// Actions carry their stage where a worker has several. A dot is an idle step, "+" joins the
// members of a compound cell, "^" follows an action with an update of weights behind it; the last
// line says so for what occurs.
std::string StepGridText(const Schedule& schedule, const StepGrid& grid, int columns,
                         TextColors colors);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_STEP_GRID_TEXT_H_
