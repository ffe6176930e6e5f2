#include "planner/bounds/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/bounds/facts/bound_facts.h"
#include "planner/bounds/linear/linear_program.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/bounds/moments/moment_facts.h"
#include "planner/bounds/moments/moment_program.h"
#include "planner/bounds/windows/window_program.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Beyond it the linear program takes seconds.
constexpr size_t kMostWindows = 2'000;
constexpr int kDigits = 20;
constexpr double kBoundary = 0.41421356;  // where in a unit of the last digit the boundary lies

// See LowerBoundOf.
Nanos RoundedDown(double nanos) {
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(nanos, &exponent), kDigits);
  const double rounded = std::floor(digits - kBoundary) + kBoundary;
  return Nanos(static_cast<int64_t>(std::floor(std::ldexp(rounded, exponent - kDigits))));
}

size_t WindowsOf(const BoundFacts& facts) {
  size_t windows = 0;
  for (const WorkerMemory& memory : facts.memory) windows += memory.windows.size();
  return windows;
}

// The cause whose rows hold up the step for longest: a row's multiplier says how much T grows with
// the time that stands first in it.
std::string ReasonOf(const WindowProgram& made, const LinearSolution& solution) {
  std::vector<double> share(made.causes.size(), 0);
  for (size_t row = 0; row < made.program.rows.size(); ++row) {
    const LinearRow& of_cause = made.program.rows[row];
    if (of_cause.cause < 0) continue;
    const LinearTerm& time = of_cause.terms.front();
    share[of_cause.cause] +=
        solution.multipliers[row] * time.coefficient * solution.values[time.column];
  }
  const auto most = std::max_element(share.begin(), share.end());
  if (most == share.end() || *most <= 0) return "the schedule's longest path";
  return made.causes[most - share.begin()];
}

// What the program proves; `reason` says by what, from its solution.
template <typename Reason>
std::optional<BoundPart> SolvedPart(const WindowProgram& made, const Reason& reason) {
  const absl::StatusOr<LinearSolution> solution = SolveLinearProgram(made.program);
  // Nothing meets all rows: a proof only as good as the solver's tolerances, so not taken as one.
  if (!solution.ok()) return std::nullopt;
  const double bound = SafeBound(made.program, solution->multipliers);
  return BoundPart{reason(*solution),
                   RoundedDown(std::max(0.0, bound) * static_cast<double>(made.unit.value))};
}

std::optional<BoundPart> ProgramBound(const BoundFacts& facts) {
  const size_t windows = WindowsOf(facts);
  if (!HasLinearSolver() || windows == 0 || windows > kMostWindows) return std::nullopt;
  const WindowProgram made = BuildWindowProgram(facts, LayerChoices::kFractional);
  return SolvedPart(made, [&](const LinearSolution& solution) {
    return absl::StrCat("linear program: ", ReasonOf(made, solution));
  });
}

std::optional<BoundPart> MomentBound(const PlanningProblem& problem, const BoundFacts& facts) {
  if (!HasLinearSolver() || WindowsOf(facts) == 0) return std::nullopt;
  const std::optional<MomentFacts> moments = MomentFactsOf(problem, facts);
  if (!moments.has_value()) return std::nullopt;
  return SolvedPart(BuildMomentProgram(facts, *moments), [](const LinearSolution&) {
    return "computing and copying from moment to moment";
  });
}

}  // namespace

absl::StatusOr<LowerBound> LowerBoundOf(const PlanningProblem& problem) {
  SIPHON_ASSIGN_OR_RETURN(const BoundFacts facts, BoundFactsOf(problem));
  LowerBound bound{.parts = CombinatorialBounds(facts)};
  if (std::optional<BoundPart> part = MomentBound(problem, facts)) {
    bound.parts.push_back(*std::move(part));
  }
  if (std::optional<BoundPart> part = ProgramBound(facts)) bound.parts.push_back(*std::move(part));
  for (const BoundPart& part : bound.parts) {
    if (!part.time.has_value()) {
      if (!bound.cannot_fit.has_value()) bound.cannot_fit = part.reason;
    } else if (*part.time > bound.step_time || bound.reason.empty()) {
      bound.step_time = *part.time;
      bound.reason = part.reason;
    }
  }
  return bound;
}

absl::StatusOr<Nanos> WholeLayerOptimum(const PlanningProblem& problem, int most_nodes) {
  SIPHON_ASSIGN_OR_RETURN(const BoundFacts facts, BoundFactsOf(problem));
  if (WindowsOf(facts) == 0) return facts.paths.step_time();
  const WindowProgram made = BuildWindowProgram(facts, LayerChoices::kWhole);
  SIPHON_ASSIGN_OR_RETURN(const IntegerSolution solution,
                          SolveIntegerProgram(made.program, most_nodes));
  if (solution.end == SolverEnd::kStopped) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no optimum is proven after ", most_nodes, " nodes of the search tree"));
  }
  return Nanos(std::llround(solution.cost * static_cast<double>(made.unit.value)));
}

}  // namespace siphon
