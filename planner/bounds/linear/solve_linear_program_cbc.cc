#include <coin/Cbc_C_Interface.h>
#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "planner/bounds/linear/solve_linear_program.h"

namespace siphon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Clp_status and Cbc_status.
constexpr int kInfeasible = 1;
constexpr int kUnbounded = 2;
constexpr int kIterations = 3;  // their limit
constexpr int kFailed = 4;

// The matrix column by column, as COIN-OR takes it.
struct ColumnMatrix {
  std::vector<CoinBigIndex> starts;
  std::vector<int> rows;
  std::vector<double> coefficients;
  std::vector<double> lower, upper, cost;  // [column]
  std::vector<double> least, most;         // [row]
};

ColumnMatrix MatrixOf(const LinearProgram& program) {
  ColumnMatrix matrix;
  std::vector<std::vector<LinearTerm>> columns(program.columns.size());  // terms name rows
  for (size_t row = 0; row < program.rows.size(); ++row) {
    matrix.least.push_back(program.rows[row].least);
    matrix.most.push_back(kInfinity);
    for (const LinearTerm& term : program.rows[row].terms) {
      columns[term.column].push_back({static_cast<int>(row), term.coefficient});
    }
  }
  for (size_t column = 0; column < columns.size(); ++column) {
    matrix.starts.push_back(static_cast<CoinBigIndex>(matrix.rows.size()));
    for (const LinearTerm& term : columns[column]) {
      matrix.rows.push_back(term.column);
      matrix.coefficients.push_back(term.coefficient);
    }
    matrix.lower.push_back(program.columns[column].lower);
    matrix.upper.push_back(program.columns[column].upper);
    matrix.cost.push_back(program.columns[column].cost);
  }
  matrix.starts.push_back(static_cast<CoinBigIndex>(matrix.rows.size()));
  return matrix;
}

absl::Status StatusOf(int status) {
  if (status == kInfeasible) {
    return absl::FailedPreconditionError("no values meet all rows of the linear program");
  }
  return absl::InternalError(absl::StrCat("CBC: status ", status));
}

}  // namespace

bool HasLinearSolver() { return true; }

absl::StatusOr<LinearSolution> SolveLinearProgram(const LinearProgram& program, int64_t most_work) {
  const ColumnMatrix matrix = MatrixOf(program);
  const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(Clp_newModel(),
                                                                       &Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  Clp_loadProblem(model.get(), static_cast<int>(program.columns.size()),
                  static_cast<int>(program.rows.size()), matrix.starts.data(), matrix.rows.data(),
                  matrix.coefficients.data(), matrix.lower.data(), matrix.upper.data(),
                  matrix.cost.data(), matrix.least.data(), matrix.most.data());
  const auto rows = static_cast<int64_t>(std::max<size_t>(1, program.rows.size()));
  constexpr int64_t kMostIterations = std::numeric_limits<int>::max();
  const int64_t iterations = std::min(most_work / rows, kMostIterations);
  Clp_setMaximumIterations(model.get(), static_cast<int>(iterations));
  Clp_dual(model.get(), /*ifValuesPass=*/0);
  const int status = Clp_status(model.get());
  if (status == kInfeasible || status == kUnbounded || status == kFailed) return StatusOf(status);
  LinearSolution solution;
  if (status == kIterations) solution.end = SolverEnd::kStopped;
  const double* values = Clp_primalColumnSolution(model.get());
  solution.values.assign(values, values + program.columns.size());
  const double* multipliers = Clp_dualRowSolution(model.get());
  solution.multipliers.assign(multipliers, multipliers + program.rows.size());
  return solution;
}

absl::StatusOr<IntegerSolution> SolveIntegerProgram(const LinearProgram& program, int most_nodes) {
  const ColumnMatrix matrix = MatrixOf(program);
  const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(Cbc_newModel(),
                                                                     &Cbc_deleteModel);
  Cbc_loadProblem(model.get(), static_cast<int>(program.columns.size()),
                  static_cast<int>(program.rows.size()), matrix.starts.data(), matrix.rows.data(),
                  matrix.coefficients.data(), matrix.lower.data(), matrix.upper.data(),
                  matrix.cost.data(), matrix.least.data(), matrix.most.data());
  for (size_t column = 0; column < program.columns.size(); ++column) {
    if (program.columns[column].kind == ColumnKind::kInteger) {
      Cbc_setInteger(model.get(), static_cast<int>(column));
    }
  }
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "threads", "0");
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", "0");
  Cbc_setParameter(model.get(), "maxNodes", absl::StrCat(most_nodes).c_str());
  Cbc_solve(model.get());
  if (Cbc_isProvenInfeasible(model.get()) != 0) return StatusOf(kInfeasible);
  if (Cbc_numberSavedSolutions(model.get()) == 0 && Cbc_isProvenOptimal(model.get()) == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no solution after ", most_nodes, " nodes of the search tree"));
  }
  IntegerSolution solution;
  const double* values = Cbc_getColSolution(model.get());
  solution.values.assign(values, values + program.columns.size());
  solution.cost = Cbc_getObjValue(model.get());
  solution.bound = Cbc_getBestPossibleObjValue(model.get());
  if (Cbc_isProvenOptimal(model.get()) == 0) solution.end = SolverEnd::kStopped;
  return solution;
}

}  // namespace siphon
