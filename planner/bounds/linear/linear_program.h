#ifndef SIPHON_PLANNER_BOUNDS_LINEAR_PROGRAM_H_
#define SIPHON_PLANNER_BOUNDS_LINEAR_PROGRAM_H_

#include <string>
#include <utility>
#include <vector>

namespace siphon {

enum class ColumnKind { kContinuous, kInteger };

struct LinearColumn {
  double lower = 0;
  double upper = 0;
  double cost = 0;
  ColumnKind kind = ColumnKind::kContinuous;
};

struct LinearTerm {
  int column = 0;
  double coefficient = 0;
};

// The sum of the terms is at least `least`.
struct LinearRow {
  std::vector<LinearTerm> terms;
  double least = 0;
  int cause = -1;  // what the row stands for, for its maker
};

// Minimise the sum of cost * column. All columns have finite bounds.
struct LinearProgram {
  std::vector<LinearColumn> columns;
  std::vector<LinearRow> rows;

  // Returns the new column.
  int AddColumn(double lower, double upper, double cost = 0) {
    columns.push_back({lower, upper, cost});
    return static_cast<int>(columns.size()) - 1;
  }
  void AddRow(std::vector<LinearTerm> terms, double least, int cause = -1) {
    rows.push_back({std::move(terms), least, cause});
  }
};

// A number that the minimum, with integer columns taken as continuous, is not below, from any
// multipliers of the rows; negative ones count as 0. It is the minimum itself when they are an
// optimal solution of the dual.
//
// Proof: multiply each row by y >= 0 and add up: cost x >= y b + (cost - y A) x, and each column's
// part of the last term is least at one of its bounds (Neumaier and Shcherbina, Safe bounds in
// linear and mixed-integer linear programming, 2004). So a solver that rounds, or stops early,
// makes this bound weaker and never wrong.
double SafeBound(const LinearProgram& program, const std::vector<double>& multipliers);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_LINEAR_PROGRAM_H_
