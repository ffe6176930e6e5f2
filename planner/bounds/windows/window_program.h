#ifndef SIPHON_PLANNER_BOUNDS_WINDOW_PROGRAM_H_
#define SIPHON_PLANNER_BOUNDS_WINDOW_PROGRAM_H_

#include <string>
#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/linear/linear_program.h"
#include "planner/units.h"

namespace siphon {

// How activations are parted among their choices.
enum class LayerChoices {
  kFractional,  // any part of each window by itself: no plan does better
  kWhole,  // a layer of a stage goes one way as a whole, in all windows: plans of single layers
};

// All windows of all workers as one linear program: the least step time T, in units of the
// schedule's longest path, that its rows allow.
//
// Columns: T; the length of each segment (BoundFacts), at least its longest path; of each window
// the bytes computed again (by kind of layer), away over links and away over the uplink; of each
// worker the bytes of parameters, gradients and optimizer state that are away in the step, over
// links, over the uplink, or with the host that steps them.
//
// Rows, each met by every step that the simulator accepts:
// - a worker's head and segments add up to T at most;
// - at each window, what is away is at least the excess;
// - a segment takes its worker's own actions and what is computed again in it, one after the other;
// - in a segment, what is back from its window and what leaves for the next fits the worker's links
//   and uplink; both directions of an uplink may run together at their slower rates;
// - over the step, so does all that a worker moves, and all that workers on shared uplinks move.
//   Parameters and the like come in and leave once at least; with the host's step gradients leave
//   and parameters come in, where they are not with the host already;
// - at each window, what is parked over links fits into what all others have to spare when they
//   send their own parameters and the like away;
// - weights that are away at a window are back in the segment behind it, and gradients have left in
//   the one before; parameters that are ever away come in before the first window, too; and weights
//   of a worker of one stage move with each action that uses them (streamed_weights.h);
// - before the first STEP, and between steps, all that is not away of weights and state fits the
//   devices, each for itself and all together; what is away comes in behind the one and leaves
//   before the other (step_end_rows.h);
// - where several workers are full at one moment for certain, likewise (full_moment_rows.h);
// - all work, recomputation included, fits the cores that workers share.
// The host's memory is taken to be enough, and NVMe as reached through the host: at its rates.
struct WindowProgram {
  LinearProgram program;
  std::vector<std::string> causes;  // LinearRow::cause: "the uplink of switch 1"
  int step_time = 0;                // column
  Nanos unit;                       // of T and all times
};

// Requires: there are windows.
WindowProgram BuildWindowProgram(const BoundFacts& facts, LayerChoices choices);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_WINDOW_PROGRAM_H_
