#ifndef SIPHON_PLANNER_BOUNDS_MOMENT_PROGRAM_H_
#define SIPHON_PLANNER_BOUNDS_MOMENT_PROGRAM_H_

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/moments/moment_facts.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// All compute actions of a step as one linear program: the least step time T that its rows allow.
// Where window_program.h looks at workers when they are fullest, this one looks at the begin of
// each action, and lets actions wait for each other.
//
// Columns: T; the begin of each action; of each microbatch of a stage what is computed again and
// what is ever away over each way; what has moved since the begin of the step, by each moment.
//
// Rows, each met by every step that the simulator accepts:
// - an action ends when its own time, and that of what is computed again in it, is over; another
//   that needs what it makes begins behind that and the message; and so does its worker's next one,
//   behind what is computed again in between;
// - what a microbatch dropped is made again when its backward has ended, and takes its room from
//   then on;
// - what is away of it has left behind its forward's begin and is back when its backward has ended;
// - optimizer state that is away at a moment left before it and comes in behind it, or is so
//   between steps; parameters that are away when an action of their stage begins come in while it
//   lasts, gradients that it changes leave in it to be away behind it;
// - at each moment what is away is at least what is too much;
// - between two moments a worker's links and uplink carry what moves;
// - behind a worker's last action its state comes in, but for what the host steps, and behind the
//   last actions of all leaves again what is away between steps, state and weights, but for those
//   of layers that the host steps; the host steps one after another;
// - as the step begins, all devices together hold what is not with the host; so they do at some
//   moments of each worker, before and behind which shared uplinks carry what all workers move
//   (moment_snapshots.h).
WindowProgram BuildMomentProgram(const BoundFacts& facts, const MomentFacts& moments);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MOMENT_PROGRAM_H_
