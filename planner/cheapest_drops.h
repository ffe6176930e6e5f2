#ifndef SIPHON_PLANNER_CHEAPEST_DROPS_H_
#define SIPHON_PLANNER_CHEAPEST_DROPS_H_

#include <vector>

#include "planner/model_profile.h"
#include "planner/units.h"

namespace siphon {

// The tensors that a layer saves first, and what it takes to compute them again.
struct DropStep {
  int first_tensors = 0;  // 0: all that it saves
  Bytes bytes;
  Nanos recompute;
  friend bool operator==(const DropStep&, const DropStep&) = default;
};

// All that can be dropped of a layer, ascending: every number of tensors that it saves first
// (FirstTensorsOf), the last one is all. `all`: what the layer saves as its own (LayerCost::stash).
// Empty where that is nothing.
std::vector<DropStep> PossibleDrops(const LayerProfile& layer, Bytes all);

// Those of them that take least time for their bytes: no other one, and no two of these in turns,
// frees as much in less. Each step to the next costs more a byte than the one before.
std::vector<DropStep> CheapestDrops(const LayerProfile& layer, Bytes all);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHEAPEST_DROPS_H_
