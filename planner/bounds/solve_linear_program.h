#ifndef SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_
#define SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/linear_program.h"

namespace siphon {

// Thread-safety: one program at a time; COIN-OR does not say which of its functions share what.

// That this build has a solver (COIN-OR CBC with its Clp).
bool HasLinearSolver();

struct LinearSolution {
  std::vector<double> values;       // [column]
  std::vector<double> multipliers;  // [row], for SafeBound
};

// Solves with integer columns taken as continuous. Deterministic; stops after a number of
// iterations at the latest, with multipliers that are good for a bound all the same. Errors:
// Unavailable without a solver; FailedPrecondition when no values meet all rows.
absl::StatusOr<LinearSolution> SolveLinearProgram(const LinearProgram& program);

struct IntegerSolution {
  std::vector<double> values;  // [column]
  double cost = 0;
  double bound = 0;  // no solution costs less; `cost`, but for rounding, unless the search stopped
};

// Solves with integer columns. Deterministic: one thread; stops after so many nodes of the search
// tree. Errors: as above; ResourceExhausted when it stopped before it had any solution.
absl::StatusOr<IntegerSolution> SolveIntegerProgram(const LinearProgram& program, int most_nodes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_
