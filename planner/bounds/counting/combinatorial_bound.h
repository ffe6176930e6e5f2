#ifndef SIPHON_PLANNER_BOUNDS_COMBINATORIAL_BOUND_H_
#define SIPHON_PLANNER_BOUNDS_COMBINATORIAL_BOUND_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/bounds/facts/bound_facts.h"
#include "planner/units.h"

namespace siphon {

// One lower bound of the step time, and what it comes from.
struct BoundPart {
  std::string reason;  // "memory of worker 0"
  // None: no time is enough, no plan fits.
  std::optional<Nanos> time;
  friend bool operator==(const BoundPart&, const BoundPart&) = default;
};

// Bounds by counting, in exact integers. Each grows, or stays, when a capacity or a rate shrinks.
//
// 1. The schedule: the longest path through what each action takes and waits for (StepPaths).
//    Proof: a plan only adds work and waits.
// 2. The cores, where workers share them: all work, over what they get done together at most.
// 3. The memory of a worker: at each of its windows `excess` bytes are away. The windows share no
//    microbatch, so that their sum, less what parameters, gradients and optimizer state leave at
//    all windows at once, is made up of different bytes, each of which
//    - is computed again: in the step's time beyond the path of the worker's own actions, the
//      layers with most bytes a nanosecond first; or
//    - crosses its device's links or uplink, out and back: at their rates for the whole step.
//    Bytes of parameters and the like come in at least once; where the host may compute optimizer
//    steps, a byte of parameters may stand for its optimizer state as well. The bound is the least
//    time at which all this is enough.
// 4. Shared uplinks: what several workers can neither compute again nor send over links of their
//    own, each within that time, crosses the uplinks.
// 5. Lenders: what a full worker and all others hold beyond their memory together (LenderBound).
//
// One part for 1, then 2 where cores are shared, 3 for each worker that is ever too full, 4 for
// each set of uplinks shared by several of these, 5 for each worker with which all others together
// are too full.
std::vector<BoundPart> CombinatorialBounds(const BoundFacts& facts);

}  // namespace siphon

#endif  // SIPHON_PLANNER_BOUNDS_COMBINATORIAL_BOUND_H_
