#include "planner/weight_offload/offload_program_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/status.h"
#include "planner/weight_offload/offload_program.h"

namespace siphon {
namespace {

// A column this near to a whole number is taken as one: it is not branched on.
constexpr double kWhole = 1e-6;
// What multiplying a bound with its unit rounds away, generously.
constexpr double kRounding = 1e-14;

struct Fixed {
  int column = 0;
  double value = 0;
};

struct Node {
  std::vector<Fixed> fixed;
  double idle = 0;  // no solution that agrees with `fixed` idles for less
  int branch = OffloadProgram::kNone;
  int order = 0;
  SolverEnd end = SolverEnd::kOptimal;  // of its relaxation
};

// The smallest bound first; of equal ones the latest, which has most fixed.
struct Later {
  bool operator()(const Node& a, const Node& b) const {
    return a.idle != b.idle ? a.idle > b.idle : a.order < b.order;
  }
};

class OffloadTree {
 public:
  OffloadTree(const WeightOffloadProblem& problem, const OffloadSearchLimits& limits)
      : limits_(limits), made_(BuildOffloadProgram(problem)), compute_(ComputeTime(problem)) {}

  absl::StatusOr<OffloadProgramBound> Search() {
    if (Reached(compute_)) return OffloadProgramBound{compute_, OffloadSearch::kWhole, 0};
    SIPHON_RETURN_IF_ERROR(Open({}));
    OffloadProgramBound bound;
    while (true) {
      const Node node = open_.top();
      bound = {StepTime(node.idle), OffloadSearch::kWhole, nodes_};
      if (Reached(bound.step_time)) return bound;
      if (node.end == SolverEnd::kStopped) {
        // Its values are nothing to go by: whole ones may be those that the solver began with.
        bound.search = OffloadSearch::kStopped;
        return bound;
      }
      if (node.branch == OffloadProgram::kNone) return bound;
      if (nodes_ + 2 > limits_.most_nodes) break;
      open_.pop();
      for (const double value : {0.0, 1.0}) {
        std::vector<Fixed> fixed = node.fixed;
        fixed.push_back({node.branch, value});
        SIPHON_RETURN_IF_ERROR(Open({.fixed = std::move(fixed), .idle = node.idle}));
      }
    }
    bound.search = nodes_ > 1 ? OffloadSearch::kStopped : OffloadSearch::kRelaxation;
    return bound;
  }

 private:
  bool Reached(Nanos step_time) const {
    return limits_.known > Nanos(0) && step_time >= limits_.known;
  }

  Nanos StepTime(double idle) const {
    const double nanos = idle * static_cast<double>(made_.unit.value) * (1 - kRounding);
    return compute_ + Nanos(std::max<int64_t>(0, std::llround(std::ceil(nanos))));
  }

  // Solves the node's relaxation. Its parent's bound holds for it, too.
  absl::Status Open(Node node) {
    LinearProgram program = made_.program;
    for (const Fixed& fixed : node.fixed) {
      program.columns[fixed.column].lower = program.columns[fixed.column].upper = fixed.value;
    }
    SIPHON_ASSIGN_OR_RETURN(const LinearSolution solution,
                            SolveLinearProgram(program, limits_.most_work));
    ++nodes_;
    node.end = solution.end;
    node.idle = std::max(node.idle, SafeBound(program, solution.multipliers));
    node.order = nodes_;
    node.branch = MostFractional(solution.values);
    open_.push(std::move(node));
    return absl::OkStatus();
  }

  int MostFractional(const std::vector<double>& values) const {
    int most = OffloadProgram::kNone;
    double distance = kWhole;
    for (const OffloadColumns& layer : made_.layers) {
      for (const int column : layer.leaves) {
        const double value = values[column];
        const double from_whole = std::min(std::abs(value), std::abs(1 - value));
        if (from_whole <= distance) continue;
        distance = from_whole;
        most = column;
      }
    }
    return most;
  }

  const OffloadSearchLimits limits_;
  const OffloadProgram made_;
  const Nanos compute_;
  std::priority_queue<Node, std::vector<Node>, Later> open_;
  int nodes_ = 0;
};

}  // namespace

absl::StatusOr<OffloadProgramBound> SolveOffloadProgram(const WeightOffloadProblem& problem,
                                                        const OffloadSearchLimits& limits) {
  return OffloadTree(problem, limits).Search();
}

}  // namespace siphon
