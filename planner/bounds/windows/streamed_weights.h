#ifndef SIPHON_PLANNER_BOUNDS_STREAMED_WEIGHTS_H_
#define SIPHON_PLANNER_BOUNDS_STREAMED_WEIGHTS_H_

#include <limits>
#include <vector>

#include "planner/bounds/windows/standing_terms.h"

namespace siphon {

inline constexpr int kEndOfProgram = std::numeric_limits<int>::max();

// Weights of a worker of one stage that are away when its backwards begin, and not on their way in:
// they are there only while an action is at their layers, and so they are in all actions that use
// them (WeightResidence::kLayerByLayer). Each of these has them come in, and gradients leave.
struct StreamedWeights {
  // Columns, each over links first, if these are open, then over the uplink. Empty for workers of
  // several stages, and where weights change within the step.
  LinearTerms parameters;
  LinearTerms gradients;
  SwapWays ways;
  // As in WorkerMemory.
  std::vector<int> parameter_uses;
  std::vector<int> gradient_uses;
};

StreamedWeights AddStreamedWeights(const BoundFacts& facts, int worker,
                                   const StandingTerms& standing, WindowProgram& made);

// What is away at the window streams: `away` is of AddWeightsAway. A window's I needs no gradients.
void LimitToStreamed(const StreamedWeights& streamed, const MemoryWindow& window,
                     const WeightsAway& away, WindowProgram& made);

// What they move in [from, to) of the worker's program, beside once, which StandingTerms and
// WeightsAway count.
struct StreamTraffic {
  LinearTerms link_in, link_out;
  LinearTerms uplink_in, uplink_out;
};
StreamTraffic StreamsWithin(const StreamedWeights& streamed, int from, int to);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_STREAMED_WEIGHTS_H_
