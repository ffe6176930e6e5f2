#ifndef SIPHON_PLANNER_BOUNDS_MOMENT_COLUMNS_H_
#define SIPHON_PLANNER_BOUNDS_MOMENT_COLUMNS_H_

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/moments/moment_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// Weights of a stage that are away over one way, by moment; and what of them has moved since the
// step's begin.
struct StageWeights {
  std::vector<int> parameters;
  std::vector<int> gradients;
  std::vector<int> in;
  std::vector<int> out;
};

// What a worker moves over one way. All but `sent` and `weights` is [moment].
struct WayColumns {
  bool open = false;          // without it there are no columns
  std::vector<int> sent;      // [life]: bytes of it that are ever away
  std::vector<int> out;       // of activations, that have left since the step's begin; likewise
  std::vector<int> in;        // that are back
  std::vector<int> away;      // whose room others have
  std::vector<int> state;     // optimizer state that is away
  std::vector<int> state_in;  // and what has come in of it since the step's begin
  std::vector<StageWeights> weights;  // [stage of the worker]
};

// One worker in the program of all moments.
struct FlowColumns {
  static constexpr int kNone = -1;

  std::vector<int> time;  // [moment]
  // [life]: by kind of layer, bytes that are computed again, and the time that takes.
  std::vector<LinearTerms> dropped;
  std::vector<LinearTerms> recompute;
  // [moment]: time of what is computed again in its action; and before it begins, behind the action
  // before it.
  std::vector<LinearTerms> within;
  std::vector<LinearTerms> early;
  // [moment]: of what is live, what is dropped and not there again yet.
  std::vector<LinearTerms> gone;
  WayColumns link, host;
  int stepped = kNone;  // optimizer state that the host steps
};

// Optimizer state that has left since the step's begin: `state` and `state_in`, less what was away
// then.
LinearTerms StateOut(const WayColumns& way, int moment);
// Parameters and gradients that are away at the moment.
LinearTerms WeightsAwayAt(const WayColumns& way, int moment);
// All that has moved by the moment.
LinearTerms AllOut(const WayColumns& way, int moment);
LinearTerms AllIn(const WayColumns& way, int moment);

// Adds one worker's columns, and the rows that need no other worker.
FlowColumns AddFlowColumns(const BoundFacts& facts, const MomentFacts& moments, int worker,
                           WindowProgram& made, ProgramRows& rows);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_MOMENT_COLUMNS_H_
