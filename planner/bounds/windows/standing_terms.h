#ifndef SIPHON_PLANNER_BOUNDS_STANDING_TERMS_H_
#define SIPHON_PLANNER_BOUNDS_STANDING_TERMS_H_

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// What a worker has away for the whole step, but for its use: parameters, gradients, optimizer
// state.
struct StandingTerms {
  static constexpr int kNone = -1;

  LinearTerms away;
  LinearTerms on_lenders;
  // Parts of `away`, each over links first, if these are open, then over the uplink.
  LinearTerms parameters;
  LinearTerms gradients;
  LinearTerms state;    // with what the host steps
  int stepped = kNone;  // column of what the host steps
  LinearTerms link_out, link_in;
  LinearTerms uplink_out, uplink_in;
  // Columns of optimizer state that is swapped, over links and over the uplink; kNone without.
  int state_link = kNone;
  int state_uplink = kNone;
  // Of the same, what is home between steps.
  int home_link = kNone;
  int home_uplink = kNone;
  // What moves only when the optimizer's step has begun, and what the host computes of it.
  LinearTerms step_link_out;
  LinearTerms step_uplink_out, step_uplink_in;
  LinearTerms step_on_host;
};

// Which ways a worker's bytes may go.
struct SwapWays {
  bool links = false;
  bool host = false;
};
SwapWays WaysOf(const BoundFacts& facts, int worker);

// Parameters and gradients that are away at one moment: of those that ever are, a part. Who uses
// them behind that moment has them back by then; gradients that were used before it, too, have left
// in between.
struct WeightsAway {
  LinearTerms all;
  LinearTerms host;  // those of them that are with the host
  LinearTerms link_in, link_out;
  LinearTerms uplink_in, uplink_out;
};
WeightsAway AddWeightsAway(const StandingTerms& standing, const SwapWays& ways,
                           WindowProgram& made);
// The same where nobody is known to use them: all that ever are, and nothing moves.
WeightsAway WeightsEverAway(const StandingTerms& standing, const SwapWays& ways);

// Optimizer state that is away at a worker's first window: what is so between steps, and what of
// the rest has left by then.
struct StateAtFirst {
  LinearTerms all;  // as StandingTerms::state, one for one
  LinearTerms link_out, uplink_out;
};
StateAtFirst AddStateAtFirst(const StandingTerms& standing, WindowProgram& made);

// Adds the worker's columns, and the rows that hold among them.
StandingTerms AddStandingTerms(const BoundFacts& facts, int worker, WindowProgram& made,
                               ProgramRows& rows);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_STANDING_TERMS_H_
