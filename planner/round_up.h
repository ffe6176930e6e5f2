#ifndef SIPHON_PLANNER_ROUND_UP_H_
#define SIPHON_PLANNER_ROUND_UP_H_

#include "planner/units.h"

namespace siphon {

// Where no two tensors of the host's or a CPU worker's memory share a cache line, and vector loads
// and stores are aligned.
inline constexpr Bytes kCacheLine{64};

// The least multiple of `granule` that has room for `bytes`. Requires: granule > 0, bytes >= 0.
constexpr Bytes RoundUp(Bytes bytes, Bytes granule) {
  return granule * ((bytes.value + granule.value - 1) / granule.value);
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_ROUND_UP_H_
