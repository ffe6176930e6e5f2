#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_GIVE_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_GIVE_H_

#include <vector>

#include "planner/strategies/mpress/mpress_emulator.h"
#include "planner/strategies/mpress/mpress_stripes.h"
#include "planner/units.h"

namespace siphon {

struct GivenToLenders {
  MemoryPlan memory;
  int groups = 0;  // that have found room
};

// `current` with up to `most` groups of the worker's activations, recomputed or on the host so far,
// on lenders (MPress, section III.D): those whose way adds most by MpressOverhead first, then those
// of later layers. Lenders are the devices of PeerPathsOf, with what `current` leaves free on them;
// each group has room there for all microbatches that are alive at once.
// Requires: `live_intervals` is [stage][group] of the plan.
GivenToLenders GiveToLenders(const MpressEmulator& emulator, const MpressCandidate& current,
                             const std::vector<std::vector<Nanos>>& live_intervals, int worker,
                             int most, MpressStriping striping);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_GIVE_H_
