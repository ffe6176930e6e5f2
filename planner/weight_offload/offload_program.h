#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_H_

#include <array>
#include <vector>

#include "planner/bounds/linear/linear_program.h"
#include "planner/units.h"
#include "planner/weight_offload/weight_offload_problem.h"

namespace siphon {

// The mixed-integer linear program of the paper's section 6 (hal-03580767): a step as intervals
// from the start of one operation to the start of the next, and how much of each weight is sent,
// fetched and deleted in each. Its minimum is a lower bound of all plans (Theorem 2), as memory is
// only looked at when operations start, and transfers are fractions.
//
// Its variables and rows are those of the paper, written with fewer terms:
// - m(i, k), the bytes of w_i in memory when operation k starts, is a column, and the deletion
//   D(i, j) = m(i, j) + P(i, j) - m(i, j+1) is not;
// - the bytes of w_i sent since B_i is a column, and the sending O(i, j) is the difference of two;
// - O*_i of equation 7 is left out: it is 1 where w_i leaves at all (equation 6 says so), and may
//   be 0 where it does not.
//
// Where the printed formulas cannot be meant, read otherwise:
// - the first part of equation 6 says that no more is fetched than was deleted, so the sum of
//   P - D is at most 0, not at least;
// - sums over "0 to 2L - 1" are over all operations;
// - M_k of equation 1 counts the operation's own weight, and the sum in equation 4 counts it once
//   more. Counted twice, it forbids plans that keep every promise of section 3 (OwnWeight::kTwice,
//   as in Algorithm 1); a lower bound counts it once.
enum class OwnWeight { kOnce, kTwice };

// The columns of one layer that has a weight. Times t count intervals from the start of its
// backward, cyclically: 0 is B_i's own.
struct OffloadColumns {
  int layer = 0;
  std::vector<int> held;     // [t], 0 .. 2L: m
  std::vector<int> sent;     // [t], 0 .. 2L: the sum of O before t
  std::vector<int> fetched;  // [t], 0 .. 2L - 1: P
  // D(0), D(1) of equation 8, integers: the weight leaves between B and F, between F and B.
  std::array<int, 2> leaves{};
};

struct OffloadProgram {
  LinearProgram program;  // minimises the idle time, in units of `unit`
  Nanos unit;
  Bytes byte_unit;
  std::vector<int> idle;    // [operation], columns: after it
  std::vector<int> lacked;  // [operation], columns: see BuildOffloadProgram; kNone where all fits
  std::vector<OffloadColumns> layers;
  static constexpr int kNone = -1;
};

// So that the program is never without a solution, however integers are fixed, an operation may
// have more memory than there is, at a price above that of moving the bytes out and in again. A
// bound stays a bound by that; a minimum that pays the price is none of the paper's program.
// Requires: a problem that passes CheckWeightOffloadProblem. O(L^2) columns, rows and terms.
OffloadProgram BuildOffloadProgram(const WeightOffloadProblem& problem,
                                   OwnWeight own_weight = OwnWeight::kOnce);

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_OFFLOAD_PROGRAM_H_
