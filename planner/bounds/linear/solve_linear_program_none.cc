#include "planner/bounds/linear/solve_linear_program.h"

namespace siphon {
namespace {

absl::Status NoSolver() {
  return absl::UnavailableError(
      "this build has no solver for linear programs; with Debian's coinor-libcbc-dev it has CBC");
}

}  // namespace

bool HasLinearSolver() { return false; }

absl::StatusOr<LinearSolution> SolveLinearProgram(const LinearProgram& /*program*/,
                                                  int64_t /*most_work*/) {
  return NoSolver();
}

absl::StatusOr<IntegerSolution> SolveIntegerProgram(const LinearProgram& /*program*/,
                                                    int /*most_nodes*/) {
  return NoSolver();
}

}  // namespace siphon
