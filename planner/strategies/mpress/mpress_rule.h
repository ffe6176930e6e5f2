#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_RULE_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_RULE_H_

#include <optional>

#include "planner/memory_plan.h"
#include "planner/units.h"

namespace siphon {

// What MPress (Zhou et al., HPCA 2023) knows of a tensor when it chooses how to save its memory.
struct TensorTimes {
  Nanos live_interval;  // from its generation, or last use, to its next use
  // Each whole: swaps out and in again. Nothing where that way is not open: no weights, gradients
  // or optimizer state are recomputed; lenders may be full.
  std::optional<Nanos> recompute;
  std::optional<Nanos> host_swap;
  std::optional<Nanos> peer_swap;
  friend bool operator==(const TensorTimes&, const TensorTimes&) = default;
};

// What a placement adds to the step (section III.D, footnote 2): of a swap what does not fit into
// the live interval, of recomputation all of it; nothing for kKeep. Requires: the way is open;
// placement is not kNvmeSwap, which MPress has not.
Nanos MpressOverhead(const TensorTimes& tensor, Placement placement);

// The placement of the least overhead; kKeep where no way is open. Of equal ones host swap first,
// then recomputation, then D2D swap (sections III.D and IV.D): host memory is plenty, the spare
// memory of devices is scarce.
Placement MpressChoice(const TensorTimes& tensor);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_RULE_H_
