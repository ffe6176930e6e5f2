#ifndef SIPHON_TESTS_PLANNER_DRAFTS_PLANNING_TESTING_H_
#define SIPHON_TESTS_PLANNER_DRAFTS_PLANNING_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/drafts/planning_problem.h"
#include "planner/lower_schedule.h"

namespace siphon {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// Whole training steps with messages.
inline Schedule LoweredSchedule(absl::string_view name, int workers, int microbatches) {
  auto schedule = BuildSchedule(
      name,
      {.workers = workers, .chunks = FindSchedule(name)->chunks, .microbatches = microbatches});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  auto lowered = InsertCommunication(*std::move(schedule));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return AppendOptimizerStep(*std::move(lowered), {});
}

// `layers` like `layer`, in stages as equal as can be.
inline PlanningProblem ProblemOf(const LayerProfile& layer, int layers, Schedule schedule,
                                 Topology topology) {
  PlanningProblem problem{.schedule = std::move(schedule), .topology = std::move(topology)};
  problem.profile.layers.assign(static_cast<size_t>(layers), layer);
  const int stages = StageCount(problem.schedule);
  for (int stage = 0; stage < stages; ++stage) {
    problem.partition.stages.push_back({stage * layers / stages, (stage + 1) * layers / stages});
  }
  return problem;
}

// Of workers to as many devices or more, in lexicographic order.
inline std::vector<DeviceMapping> EveryMap(int workers, int devices) {
  std::vector<int> order;
  for (int device = 0; device < devices; ++device) order.push_back(device);
  std::vector<DeviceMapping> maps;
  do {
    DeviceMapping map;
    for (int worker = 0; worker < workers; ++worker)
      map.device_of_worker.emplace_back(order[worker]);
    if (maps.empty() || !(maps.back() == map)) maps.push_back(std::move(map));
  } while (std::next_permutation(order.begin(), order.end()));
  return maps;
}

inline void SetCapacity(PlanningProblem& problem, Bytes capacity) {
  problem.capacity.assign(problem.schedule.programs.size(), capacity);
}

// Two workers with two layers each, of 10 bytes of activations and nothing else. Worker 0 keeps two
// microbatches at once, 40 bytes, and worker 1 one, 20. Both may have 35.
inline PlanningProblem TwoWorkers(Topology topology) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = {{"all", Bytes(10)}}},
                                      4, LoweredSchedule("1f1b", 2, 4), std::move(topology));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(35));
  return problem;
}

inline constexpr BytesPerSecond kByteANano{1'000'000'000};

inline Topology TwoLinkedDevices() {
  Topology topology = UniformTopology(2, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  return WithHost(topology, 2, {.to_host = kByteANano, .from_host = kByteANano});
}

// Two workers of four layers, each with 30 bytes of activations for each of four microbatches and
// 200 of optimizer state: 480 and 800 a worker.
inline PlanningProblem TwoFullWorkers(Bytes capacity) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .optimizer = Nanos(10),
                                       .parameters = Bytes(10),
                                       .gradients = Bytes(10),
                                       .optimizer_state = Bytes(200),
                                       .boundary = Bytes(5),
                                       .saved = {{"all", Bytes(30)}}},
                                      8, LoweredSchedule("gpipe", 2, 4), TwoLinkedDevices());
  problem.granule = Bytes(1);
  problem.host_step = Nanos(1000);
  SetCapacity(problem, capacity);
  return problem;
}

// A layer of GPT with hidden size 4096 and sequences of 1024, two a microbatch, in 16 bits: 201
// million parameters, 34 + 5 * heads * sequence / hidden = 74 bytes saved for each element of its
// output (Korthikanti et al., arXiv:2205.05198, formula 2), times of a V100 at half its peak.
inline LayerProfile GptLayer() {
  constexpr int64_t kParameters = 201'400'000;
  constexpr int64_t kElements = 2 * 1024 * 4096;
  return {.forward = Nanos(14'300'000),
          .input_backward = Nanos(14'300'000),
          .weight_backward = Nanos(14'300'000),
          .optimizer = Nanos(8'000'000),
          .parameters = Bytes(2 * kParameters),
          .gradients = Bytes(2 * kParameters),
          .optimizer_state = Bytes(12 * kParameters),
          .boundary = Bytes(2 * kElements),
          .saved = {{"all", Bytes(74 * kElements)}}};
}

// Eight V100 with 32 GiB in a hybrid cube mesh (as configs/topologies/dgx1_v100.yaml).
inline Topology Dgx1V100() {
  constexpr int kWires[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  constexpr BytesPerSecond kWire{24'200'000'000};
  constexpr BytesPerSecond kDevice{146'000'000'000};
  constexpr BytesPerSecond kHost{11'700'000'000};
  Topology topology{.name = "DGX-1"};
  for (int from = 0; from < 8; ++from) {
    topology.devices.push_back(
        {.memory = Bytes(32 * kGiB), .egress = kDevice, .ingress = kDevice, .numa = from / 4});
    for (int to = 0; to < 8; ++to) {
      if (kWires[from][to] == 0) continue;
      topology.links.push_back(
          {DeviceId(from), DeviceId(to), kWire * kWires[from][to], Nanos(2'000), kWires[from][to]});
    }
  }
  topology.host_memory = Bytes(512'000'000'000);
  return WithHost(topology, 2, {.to_host = kHost, .from_host = kHost, .latency = Nanos(9'000)});
}

// One-forward-one-backward of 32 microbatches over the eight devices.
inline PlanningProblem GptOnDgx1(int layers) {
  PlanningProblem problem =
      ProblemOf(GptLayer(), layers, LoweredSchedule("1f1b", 8, 32), Dgx1V100());
  SetCapacity(problem, Bytes(31 * kGiB));
  return problem;
}

// Layers with gradients in 32 bits, over four of the devices; a device has room for so much, the
// host for whatever leaves.
inline PlanningProblem GptThatStreams(int layers, int64_t capacity) {
  LayerProfile layer = GptLayer();
  layer.gradients = layer.gradients * 2;
  PlanningProblem problem = ProblemOf(layer, layers, LoweredSchedule("1f1b", 4, 8), Dgx1V100());
  problem.granule = Bytes(2 << 20);
  problem.host_step = Nanos(2'000'000'000);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

// F 1 us, B 2 us, 200 bytes saved, 1,000 of optimizer state.
inline LayerProfile LayerOfMuchState() {
  return {.forward = Nanos(1000),
          .input_backward = Nanos(1000),
          .weight_backward = Nanos(1000),
          .optimizer = Nanos(10),
          .parameters = Bytes(10),
          .gradients = Bytes(10),
          .optimizer_state = Bytes(1000),
          .boundary = Bytes(1),
          .saved = {{"all", Bytes(200)}}};
}

// Two workers of two such layers. Of the first one two microbatches are live at once, of the second
// one. State of a layer takes the host a thousand times as long to step as the device, and a
// microsecond to be copied: less than the second worker waits for its first forward.
inline PlanningProblem TwoWorkersOfMuchState(Bytes capacity) {
  PlanningProblem problem = ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4),
                                      WithHost(UniformTopology(2, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(40'000);
  SetCapacity(problem, capacity);
  return problem;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_DRAFTS_PLANNING_TESTING_H_
