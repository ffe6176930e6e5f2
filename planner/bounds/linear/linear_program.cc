#include "planner/bounds/linear/linear_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace siphon {
namespace {

// What adding up numbers of size 1 can round away, generously.
constexpr double kRounding = 1e-14;

}  // namespace

double SafeBound(const LinearProgram& program, const std::vector<double>& multipliers) {
  std::vector<double> reduced;
  for (const LinearColumn& column : program.columns) reduced.push_back(column.cost);
  double bound = 0;
  double size = 0;
  for (size_t row = 0; row < program.rows.size(); ++row) {
    const double multiplier = std::max(0.0, multipliers[row]);
    bound += multiplier * program.rows[row].least;
    size += std::abs(multiplier * program.rows[row].least);
    for (const LinearTerm& term : program.rows[row].terms) {
      reduced[term.column] -= multiplier * term.coefficient;
    }
  }
  for (size_t column = 0; column < program.columns.size(); ++column) {
    const LinearColumn& limits = program.columns[column];
    const double part = std::min(reduced[column] * limits.lower, reduced[column] * limits.upper);
    bound += part;
    size += std::abs(part);
  }
  const auto terms = static_cast<double>(program.rows.size() + program.columns.size());
  return bound - size * terms * kRounding;
}

}  // namespace siphon
