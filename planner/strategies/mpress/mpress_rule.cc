#include "planner/strategies/mpress/mpress_rule.h"

#include <algorithm>

#include "planner/status.h"

namespace siphon {
namespace {

const std::optional<Nanos>& TimeOf(const TensorTimes& tensor, Placement placement) {
  switch (placement) {
    case Placement::kRecompute:
      return tensor.recompute;
    case Placement::kHostSwap:
      return tensor.host_swap;
    case Placement::kPeerSwap:
      return tensor.peer_swap;
    case Placement::kKeep:
    case Placement::kNvmeSwap:
      break;
  }
  SIPHON_CHECK(false, "MPress recomputes, or swaps to the host or to peers");
}

}  // namespace

Nanos MpressOverhead(const TensorTimes& tensor, Placement placement) {
  if (placement == Placement::kKeep) return Nanos(0);
  const std::optional<Nanos>& time = TimeOf(tensor, placement);
  SIPHON_CHECK(time.has_value(), "a tensor goes a way that is open to it");
  if (placement == Placement::kRecompute) return *time;
  return std::max(Nanos(0), *time - tensor.live_interval);
}

Placement MpressChoice(const TensorTimes& tensor) {
  Placement best = Placement::kKeep;
  for (const Placement placement :
       {Placement::kHostSwap, Placement::kRecompute, Placement::kPeerSwap}) {
    if (!TimeOf(tensor, placement)) continue;
    if (best == Placement::kKeep ||
        MpressOverhead(tensor, placement) < MpressOverhead(tensor, best)) {
      best = placement;
    }
  }
  return best;
}

}  // namespace siphon
