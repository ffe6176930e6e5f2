#ifndef SIPHON_TESTS_PLANNER_MAPPING_MAPPING_TESTING_H_
#define SIPHON_TESTS_PLANNER_MAPPING_MAPPING_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "planner/mapping/parking_demand.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"

namespace siphon {

inline void Link(Topology& topology, int a, int b, int wires, int64_t wire_rate) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    topology.links.push_back({.from = DeviceId(from),
                              .to = DeviceId(to),
                              .rate = BytesPerSecond(wire_rate * wires),
                              .wires = wires});
  }
}

// One NVLink of V100: 24.2 GB/s measured (p2pBandwidthLatencyTest on V100-SXM2).
inline constexpr int64_t kDgx1WireRate = 24'200'000'000;

// The hybrid cube mesh of DGX-1 with V100 (nvidia-smi topo -m of that server), without its host.
inline Topology Dgx1V() {
  Topology topology;
  topology.devices.resize(8);
  constexpr int kWires[16][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                 {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                 {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& [a, b, wires] : kWires) Link(topology, a, b, wires, kDgx1WireRate);
  return topology;
}

// Wires with up to `most_wires` between two devices, none where the dice say 0; now and then caps.
inline Topology RandomMesh(int devices, int most_wires, int64_t wire_rate, std::mt19937& random) {
  Topology topology;
  topology.devices.resize(devices);
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < a; ++b) {
      const int wires = static_cast<int>(random() % (most_wires + 1));
      if (wires > 0) Link(topology, a, b, wires, wire_rate);
    }
  }
  for (TopologyDevice& device : topology.devices) {
    if (random() % 4 == 0) device.egress = BytesPerSecond(wire_rate * (1 + random() % 4));
    if (random() % 4 == 0) device.ingress = BytesPerSecond(wire_rate * (1 + random() % 4));
  }
  return topology;
}

// Some park up to `most` bytes, the others lend as many.
inline ParkingDemand RandomDemand(int workers, int64_t most, std::mt19937& random) {
  ParkingDemand demand;
  for (int worker = 0; worker < workers; ++worker) {
    const Bytes bytes(static_cast<int64_t>(random() % (most + 1)));
    demand.workers.push_back(random() % 2 == 0 ? ParkingNeed{bytes, Bytes(0)}
                                               : ParkingNeed{Bytes(0), bytes});
  }
  return demand;
}

inline DeviceMapping MapOf(const std::vector<int>& devices) {
  DeviceMapping mapping;
  for (const int device : devices) mapping.device_of_worker.emplace_back(device);
  return mapping;
}

inline std::vector<int> Numbers(const DeviceMapping& mapping) {
  std::vector<int> numbers;
  for (const DeviceId device : mapping.device_of_worker) numbers.push_back(device.value);
  return numbers;
}

// Device d becomes image[d].
inline Topology Renumbered(const Topology& original, const std::vector<int>& image) {
  Topology topology = original;
  for (int device = 0; device < DeviceCount(original); ++device) {
    topology.devices[image[device]] = original.devices[device];
  }
  for (TopologyLink& link : topology.links) {
    link.from = DeviceId(image[link.from.value]);
    link.to = DeviceId(image[link.to.value]);
  }
  return topology;
}

inline std::vector<int> Shuffled(int devices, std::mt19937& random) {
  std::vector<int> image(devices);
  std::iota(image.begin(), image.end(), 0);
  std::shuffle(image.begin(), image.end(), random);
  return image;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_MAPPING_MAPPING_TESTING_H_
