#ifndef SIPHON_PLANNER_IDS_H_
#define SIPHON_PLANNER_IDS_H_

#include <compare>
#include <utility>

namespace siphon {

// A small integer that means one thing only. Ids of different tags do not mix; the raw number is
// `.value`.
template <typename Tag>
struct Id {
  constexpr Id() = default;
  constexpr explicit Id(int raw) : value(raw) {}
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Id& id) {
    return H::combine(std::move(state), id.value);
  }
  int value = 0;
};

using StageId = Id<struct StageTag>;            // part of the model, 0 nearest the input
using WorkerId = Id<struct WorkerTag>;          // place in the pipeline; one process each
using DeviceId = Id<struct DeviceTag>;          // hardware
using MicrobatchId = Id<struct MicrobatchTag>;  // 0 .. microbatches - 1 within one step

}  // namespace siphon

#endif  // SIPHON_PLANNER_IDS_H_
