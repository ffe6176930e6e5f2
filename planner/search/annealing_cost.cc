#include "planner/search/annealing_cost.h"

#include <algorithm>

namespace siphon {
namespace {

// A draft that needs all of one capacity more counts as so many times as slow, beside its own step.
constexpr double kExcessWeight = 3;

}  // namespace

AnnealingCost::AnnealingCost(const PlanningProblem& problem) {
  for (const Bytes capacity : problem.capacity) largest_ = std::max(largest_, capacity);
}

double AnnealingCost::Of(const SimulatedDraft& simulated) const {
  const auto step = static_cast<double>(simulated.score.step.value);
  const auto excess = static_cast<double>(simulated.score.excess.value);
  return step * (1 + kExcessWeight * excess / static_cast<double>(largest_.value));
}

}  // namespace siphon
