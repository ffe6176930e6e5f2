#ifndef SIPHON_TESTS_PLANNER_SIMULATOR_TWO_LAYERS_H_
#define SIPHON_TESTS_PLANNER_SIMULATOR_TWO_LAYERS_H_

#include <utility>
#include <vector>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {

// Group 0 are the first layer's 100 bytes of activations, group 1 the second layer's 60. The
// layer's input, which stays when a group is dropped, is 8 bytes.
inline std::vector<PlannedGroup> TwoGroups(const GroupChoice& first,
                                           const GroupChoice& second = {}) {
  const TensorGroup group{.input = Bytes(8), .recompute = Nanos(5)};
  std::vector<PlannedGroup> groups = {{group, first}, {group, second}};
  groups[0].group.layers = {0, 1};
  groups[0].group.bytes = Bytes(100);
  groups[1].group.layers = {1, 2};
  groups[1].group.bytes = Bytes(60);
  return groups;
}

inline const GroupChoice kHost{.placement = Placement::kHostSwap};
inline const GroupChoice kDropped{.placement = Placement::kRecompute};

// One worker with one stage of two layers, each 5 ns forward, 5 for the input's gradient and 5 for
// the weights'; 20 and 10 bytes stay for W. The host takes 10 bytes a nanosecond, each way.
inline SimulationInput TwoLayers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  const LayerCost layer{
      .forward = Nanos(5), .input_backward = Nanos(5), .weight_backward = Nanos(5)};
  SimulationInput input = EqualStages(ParsedSchedule(schedule), {.forward = Nanos(10),
                                                                 .input_backward = Nanos(10),
                                                                 .weight_backward = Nanos(10),
                                                                 .stash = Bytes(160),
                                                                 .kept_for_weights = Bytes(30)});
  input.layers = {{layer, layer}};
  input.layers[0][0].stash = Bytes(100);
  input.layers[0][0].kept_for_weights = Bytes(20);
  input.layers[0][1].stash = Bytes(60);
  input.layers[0][1].kept_for_weights = Bytes(10);
  input.transport.host_rate = BytesPerSecond(10 * kGigabyte);
  input.memory.stages = {{.groups = std::move(groups)}};
  return input;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_SIMULATOR_TWO_LAYERS_H_
