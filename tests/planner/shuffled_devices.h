#ifndef SIPHON_TESTS_PLANNER_SHUFFLED_DEVICES_H_
#define SIPHON_TESTS_PLANNER_SHUFFLED_DEVICES_H_

#include <utility>
#include <vector>

#include "planner/ids.h"
#include "tests/planner/dice.h"

namespace siphon {

// Devices 0, 1, .. in any order.
inline std::vector<DeviceId> ShuffledDevices(int devices, Dice& dice) {
  std::vector<DeviceId> order;
  for (int device = 0; device < devices; ++device) order.emplace_back(device);
  for (int last = devices - 1; last > 0; --last) std::swap(order[last], order[dice.Roll(0, last)]);
  return order;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_SHUFFLED_DEVICES_H_
