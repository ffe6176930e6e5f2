#include "planner/strategies/search_effort.h"

#include <algorithm>

namespace siphon {
namespace {

// Simulations, times the forwards of single layers in one of them. 75 steps of 125 layers and 32
// microbatches take about 0.4 s.
constexpr int64_t kMostForwards = 300'000;
constexpr int64_t kMostImprovements = 1'500;
// Problems of a few layers and microbatches get more: some of their best drafts differ in many
// decisions at once from all that are nearly as good (tests/bench/plan_gaps --tiny).
constexpr int64_t kTinyForwards = 60'000;
constexpr int64_t kMostTinyImprovements = 4'000;

}  // namespace

int ImprovementsOf(const PlanningProblem& problem) {
  const int64_t forwards =
      std::max<int64_t>(1, static_cast<int64_t>(problem.profile.layers.size()) *
                               problem.schedule.microbatches * problem.schedule.replicas);
  const int64_t improvements =
      std::clamp(kMostForwards / forwards, kFewestImprovements, kMostImprovements);
  return static_cast<int>(
      std::max(improvements, std::min(kTinyForwards / forwards, kMostTinyImprovements)));
}

bool IsLarge(const PlanningProblem& problem) {
  return ImprovementsOf(problem) < 2 * kFewestImprovements;
}

int64_t MapsFor(const PlanningProblem& problem) { return IsLarge(problem) ? 12 : 60; }

int MoreOf(const PlanningProblem& problem, int most, int part_of_large) {
  const int simulations = ImprovementsOf(problem);
  return IsLarge(problem) ? simulations / part_of_large : std::min(simulations, most);
}

}  // namespace siphon
