#ifndef SIPHON_TESTS_PLANNER_RANDOM_HOST_H_
#define SIPHON_TESTS_PLANNER_RANDOM_HOST_H_

#include <cstdint>

#include "planner/topology.h"
#include "tests/planner/dice.h"

namespace siphon {

// `topology` with one to three devices behind each uplink, which goes both ways at two thirds of
// `alone`, bytes a second.
inline Topology WithRandomHost(const Topology& topology, int64_t alone, Dice& dice) {
  return WithHost(topology, dice.Roll(1, 3),
                  {.to_host = BytesPerSecond(alone),
                   .from_host = BytesPerSecond(alone),
                   .to_host_both = BytesPerSecond(alone * 2 / 3),
                   .from_host_both = BytesPerSecond(alone * 2 / 3),
                   .latency = Nanos(dice.Roll(0, 3))});
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_RANDOM_HOST_H_
