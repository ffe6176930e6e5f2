#ifndef SIPHON_PLANNER_PLACEMENT_BYTES_H_
#define SIPHON_PLANNER_PLACEMENT_BYTES_H_

#include <array>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/plan_text.h"
#include "planner/schedule.h"
#include "planner/units.h"

namespace siphon {

// [stage]: the most microbatches between their F and their B (or W) at once.
std::vector<int> PeakLiveMicrobatches(const Schedule& schedule);

// [stage]: the same, and the most weights at once that are older than the newest.
std::vector<LiveCopies> PeakLiveCopies(const Schedule& schedule);

// How many of a group's copies are away at once, at most: of weight versions one more than are
// older, as they leave while they are the newest.
int CopiesAway(GroupKind kind, const LiveCopies& live);

// [stage][group]: how many of a group's copies go where it is placed, of those that are live at
// once, at most: activations of microbatches that the programs swap out or drop; all of what else
// is not kept, and of weight versions one more (CopiesAway). 0: it is kept.
std::vector<std::vector<int>> CopiesThatGo(const Schedule& programs, const MemoryPlan& memory);

// [placement]
using PlacementBytes = std::array<Bytes, kPlacements>;

// [stage]: its parameters, gradients, optimizer state, saved activations and weight versions by
// where they are while nobody needs them, those that pass as often as they are live at once, at
// most (and go there: CopiesThatGo; the others are kept). Those of no group are kept; optimizer
// state of a stage that the host steps is with the host.
std::vector<PlacementBytes> BytesByPlacement(const PlanText& plan);

PlacementBytes Sum(const std::vector<PlacementBytes>& stages);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PLACEMENT_BYTES_H_
