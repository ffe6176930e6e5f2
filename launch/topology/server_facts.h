#ifndef SIPHON_LAUNCH_TOPOLOGY_SERVER_FACTS_H_
#define SIPHON_LAUNCH_TOPOLOGY_SERVER_FACTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/topology/pcie_place.h"
#include "launch/topology/topology_keys.h"
#include "swap/device/cuda_nvml.h"
#include "swap/device/cuda_options.h"

namespace siphon {

// What a server has, before anything is measured.
struct ServerFacts {
  // Everything but rates and latencies. Devices are those that CUDA shows, in its order.
  TopologyKeys keys;
  std::vector<PciePlace> places;    // [device]
  std::vector<int> shared_bridges;  // [device], as SharedBridges has it
  std::vector<std::string> notes;
};

// Of devices as CUDA shows them (at least one), links as NVML does (none: it did not answer; `why`
// says so), and places as sysfs does.
ServerFacts CombineFacts(const std::vector<CudaDeviceInfo>& devices,
                         const std::optional<NvmlServer>& nvml, absl::string_view why,
                         std::vector<PciePlace> places);

// As planner/performance/devices.def names it, "V100-32" of "Tesla V100-SXM2-32GB"; empty: it does
// not know such a device.
std::string DeviceKindOf(absl::string_view name, Bytes memory);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_SERVER_FACTS_H_
