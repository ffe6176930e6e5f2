#ifndef SIPHON_TESTS_PLANNER_BASELINES_BASELINE_MACHINES_H_
#define SIPHON_TESTS_PLANNER_BASELINES_BASELINE_MACHINES_H_

#include "planner/baselines/baseline_problem.h"

namespace siphon {

// A byte a nanosecond.
inline constexpr BytesPerSecond kByteANano{1'000'000'000};
inline constexpr Bytes kAmple{1'000'000};

// Devices joined by links of a byte a nanosecond each, `sharing` of them behind an uplink as fast.
inline Topology ByteANanoServer(int devices, int sharing) {
  Topology topology = UniformTopology(devices, kByteANano, Nanos(0));
  topology.host_memory = kAmple;
  return WithHost(topology, sharing, {.to_host = kByteANano, .from_host = kByteANano});
}

// F takes 10 ns, B 20, the optimizer 5; 100 bytes of weights, 100 of gradients, 600 of state, 50
// saved, of which 5 are the output.
inline LayerProfile SmallLayer() {
  return {.name = "layer",
          .forward = Nanos(10),
          .input_backward = Nanos(10),
          .weight_backward = Nanos(10),
          .optimizer = Nanos(5),
          .parameters = Bytes(100),
          .gradients = Bytes(100),
          .optimizer_state = Bytes(600),
          .boundary = Bytes(5),
          .saved = {{"all", Bytes(50)}}};
}

inline BaselineProblem SmallBaseline(int layers, int devices) {
  BaselineProblem problem{
      .topology = ByteANanoServer(devices, 1), .capacity = kAmple, .host_step = Nanos(20) * layers};
  problem.profile.layers.assign(layers, SmallLayer());
  return problem;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_BASELINES_BASELINE_MACHINES_H_
