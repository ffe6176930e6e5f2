#ifndef SIPHON_PLANNER_BOUNDS_FULL_MOMENT_ROWS_H_
#define SIPHON_PLANNER_BOUNDS_FULL_MOMENT_ROWS_H_

#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/windows/program_rows.h"
#include "planner/bounds/windows/standing_terms.h"
#include "planner/bounds/windows/window_columns.h"
#include "planner/bounds/windows/window_program.h"

namespace siphon {

// The columns that stand for a moment in the program of its worker.
struct MomentColumns {
  WindowTerms window;
  WeightsAway weights;
  std::vector<int> segments_behind;  // lengths of the worker's segments from the window on
};

// Adds columns and rows of a moment at which several workers are full:
// - what all of them have live is in the devices' memory, theirs or a lender's, but for what is
//   with the host or dropped: so lenders that are full at the same time lend nothing;
// - so it is of each worker by itself, when also what is with lenders is taken off;
// - what is dropped then is computed again behind it, on its worker, one after the other with the
//   worker's own actions;
// - what is away then has left before it, behind the first F of the worker that is live then, and
//   is back before the last of the backwards that use it has ended.
void AddFullMoment(const BoundFacts& facts, const FullMoment& moment, const MomentColumns& columns,
                   const std::vector<StandingTerms>& standing, WindowProgram& made,
                   ProgramRows& rows);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_FULL_MOMENT_ROWS_H_
