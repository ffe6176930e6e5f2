#ifndef SIPHON_TESTS_PLANNER_PUBLISHED_MPRESS_MACHINES_H_
#define SIPHON_TESTS_PLANNER_PUBLISHED_MPRESS_MACHINES_H_

#include "partitioner/partition_model.h"
#include "pipeline/schedules/build_schedule.h"
#include "planner/published/mpress_instance.h"
#include "planner/topology.h"

namespace siphon {

// NVLinks of a DGX-1 with V100 (nvidia-smi topo -m, as in configs/topologies/dgx1_v100.yaml).
inline constexpr int kDgx1Wires[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                         {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                         {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                         {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

// The preset of that name: 32 GiB a device, 24.2 GB/s a wire, 11.7 GB/s for two devices to the
// host.
inline Topology Dgx1() {
  constexpr BytesPerSecond kWire{24'200'000'000};
  constexpr BytesPerSecond kCap{146'000'000'000};
  constexpr BytesPerSecond kHost{11'700'000'000};
  Topology topology{.name = "DGX-1", .device_kind = "V100-32"};
  for (int from = 0; from < 8; ++from) {
    topology.devices.push_back(
        {.memory = Bytes(int64_t{32} << 30), .egress = kCap, .ingress = kCap, .numa = from / 4});
    for (int to = 0; to < 8; ++to) {
      const int wires = kDgx1Wires[from][to];
      if (wires == 0) continue;
      topology.links.push_back({DeviceId(from), DeviceId(to), kWire * wires, Nanos(2'000), wires});
    }
  }
  topology.nominal_wire_rate = BytesPerSecond(25'000'000'000);
  topology.host_memory = Bytes(768'000'000'000);
  return WithHost(topology, 2, {.to_host = kHost, .from_host = kHost, .latency = Nanos(9'000)});
}

// MPress's A100 server, as the preset dgx_a100.
inline Topology A100Server() {
  constexpr BytesPerSecond kHost{26'000'000'000};
  constexpr BytesPerSecond kHostBoth{19'000'000'000};
  Topology topology = NvswitchTopology(8, BytesPerSecond(276'000'000'000), Nanos(2'500));
  topology.name = "A100 server";
  topology.device_kind = "A100";
  for (TopologyDevice& device : topology.devices) device.memory = Bytes(int64_t{40} << 30);
  topology.host_memory = Bytes(948'000'000'000);
  return WithHost(topology, 2,
                  {.to_host = kHost,
                   .from_host = kHost,
                   .to_host_both = kHostBoth,
                   .from_host_both = kHostBoth,
                   .latency = Nanos(9'000)});
}

// Cut as Table II is met.
inline MpressTools ToolsWithFloors() {
  return {.build_schedule = BuildSchedule, .partition = [](const ModelSpec& model, int stages) {
            return CutAtFloor(model, stages);
          }};
}

// Cut by computing time, as the paper says.
inline MpressTools ToolsWithBalance() {
  return {.build_schedule = BuildSchedule, .partition = [](const ModelSpec& model, int stages) {
            return PartitionModel(model, stages, "balanced");
          }};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_PUBLISHED_MPRESS_MACHINES_H_
