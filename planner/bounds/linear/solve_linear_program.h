#ifndef SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_
#define SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/bounds/linear/linear_program.h"

namespace siphon {

// Thread-safety: one program at a time; COIN-OR does not say which of its functions share what.

// That this build has a solver (COIN-OR CBC with its Clp).
bool HasLinearSolver();

enum class SolverEnd {
  kOptimal,  // the minimum
  kStopped   // by its limit: values may meet no row, and need not be the best
};

struct LinearSolution {
  std::vector<double> values;       // [column]
  std::vector<double> multipliers;  // [row], for SafeBound
  SolverEnd end = SolverEnd::kOptimal;
};

// Rows times iterations, each of which takes longer with more of them: some four seconds of an AMD
// EPYC core. The largest program of the gap grid takes nine tenths of it, half of them a five
// hundredth; a job without nearly enough memory took a minute.
inline constexpr int64_t kMostLinearWork = 200'000'000;

// Solves with integer columns taken as continuous. Deterministic; stops after `most_work`, in that
// unit, at the latest, with multipliers that are good for a bound all the same. Errors: Unavailable
// without a solver; FailedPrecondition when no values meet all rows.
absl::StatusOr<LinearSolution> SolveLinearProgram(const LinearProgram& program,
                                                  int64_t most_work = kMostLinearWork);

struct IntegerSolution {
  std::vector<double> values;  // [column]
  double cost = 0;
  double bound = 0;  // no solution costs less; `cost`, but for rounding, unless the search stopped
  SolverEnd end = SolverEnd::kOptimal;
};

// Solves with integer columns. Deterministic: one thread; stops after so many nodes of the search
// tree. Errors: as above; ResourceExhausted when it stopped before it had any solution.
absl::StatusOr<IntegerSolution> SolveIntegerProgram(const LinearProgram& program, int most_nodes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_SOLVE_LINEAR_PROGRAM_H_
