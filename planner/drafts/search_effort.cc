#include "planner/drafts/search_effort.h"

#include <algorithm>

#include "planner/topology_symmetry.h"

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
// Maps that are simulated, likewise, and bounds of maps, of which one takes a tenth of the time, or
// a third where workers that copy much share uplinks.
constexpr int64_t kMapForwards = 200'000;
constexpr int64_t kFewestMaps = 12;
constexpr int64_t kMostMaps = 1'000;
constexpr int64_t kMapPartForwards = 1'600'000;
constexpr int64_t kMostMapParts = 20'000;
constexpr int64_t kMapPartsOfLarge = 75;
// Enough to go through all maps of a server that has no more of them, such as a DGX-1: of the gap
// grid's plans there the one that needs most takes 10,100 maps and 17,300 bounds, none more than
// 15 s with 2 cores.
constexpr int64_t kMostProvableMaps = 12'000;
constexpr int64_t kProofForwards = 6'200'000;
constexpr int64_t kProofPartForwards = 15'000'000;
constexpr int kProofsAtOnce = 256;

// In one simulation.
int64_t ForwardsOf(const PlanningProblem& problem) {
  return std::max<int64_t>(1, static_cast<int64_t>(problem.profile.layers.size()) *
                                  problem.schedule.microbatches * problem.schedule.replicas);
}

bool HasFewMaps(const Topology& topology) {
  const auto maps = TopologySymmetry(topology, SymmetryScope::kWithHost).DistinctMaps();
  return maps.has_value() && *maps <= kMostProvableMaps;
}

}  // namespace

int ImprovementsOf(const PlanningProblem& problem) {
  if (problem.effort == kLeastEffort) return kFewestImprovements;
  const int64_t forwards = ForwardsOf(problem);
  const int64_t improvements =
      std::clamp(kMostForwards * problem.effort / forwards, kFewestImprovements, kMostImprovements);
  return static_cast<int>(
      std::max(improvements, std::min(kTinyForwards / forwards, kMostTinyImprovements)));
}

bool IsLarge(const PlanningProblem& problem) {
  return ImprovementsOf(problem) < 2 * kFewestImprovements;
}

MapEffort MapsFor(const PlanningProblem& problem) {
  if (IsLarge(problem)) return {.maps = kFewestMaps, .parts = kMapPartsOfLarge};
  const int64_t forwards = ForwardsOf(problem);
  return {.maps = std::clamp<int64_t>(kMapForwards / forwards, kFewestMaps, kMostMaps),
          .parts = std::min(kMapPartForwards / forwards, kMostMapParts)};
}

MapEffort MapsToProve(const PlanningProblem& problem) {
  const bool proves = problem.goal == PlanningGoal::kShortestStep && !IsLarge(problem);
  if (!proves || !HasFewMaps(problem.topology)) return MapsFor(problem);
  const int64_t forwards = ForwardsOf(problem);
  return {.maps = std::max(kProofForwards / forwards, kFewestMaps),
          .parts = kProofPartForwards / forwards,
          .at_once = kProofsAtOnce};
}

MapEffort MapsAtFirst(const PlanningProblem& problem) {
  return {.maps = kFewestMaps, .parts = MapsFor(problem).parts};
}

MapEffort MapsForSingle(const PlanningProblem& problem) {
  const MapEffort effort = MapsFor(problem);
  if (IsLarge(problem)) return {.maps = kFewestMaps / 2, .parts = effort.parts};
  return {.maps = std::max(kFewestMaps, effort.maps / 4), .parts = effort.parts};
}

int MoreOf(const PlanningProblem& problem, int most, int part_of_large) {
  const int simulations = ImprovementsOf(problem);
  return IsLarge(problem) ? simulations / part_of_large : std::min(simulations, most);
}

}  // namespace siphon
