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

// What can be dropped of a layer that takes least time for its bytes: no other choice of first
// tensors, and no two of these in turns, frees as much in less time. Ascending in bytes, the last
// one is all; each step to the next costs more a byte than the one before. `all`: what the layer
// saves as its own (LayerCost::stash). Empty where that is nothing.
std::vector<DropStep> CheapestDrops(const LayerProfile& layer, Bytes all);

}  // namespace siphon

#endif  // SIPHON_PLANNER_CHEAPEST_DROPS_H_
