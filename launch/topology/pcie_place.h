#ifndef SIPHON_LAUNCH_TOPOLOGY_PCIE_PLACE_H_
#define SIPHON_LAUNCH_TOPOLOGY_PCIE_PLACE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/units.h"

namespace siphon {

// Where a device sits on PCIe, as Linux shows it below /sys.
struct PciePlace {
  std::string host_bridge;           // "pci0000:3a"; empty: not known
  std::vector<std::string> bridges;  // from the root port to the device; empty: not known
  std::optional<int> numa;           // none: one node, or a virtual machine hides it
  int generation = 0;                // of its slot and card, whichever is less; 0: not known
  int lanes = 0;                     // likewise
};

// `bus_id` as CanonicalBusId has it; `sysfs` is "/sys" but in tests. What is not there is not
// known. A link's speed drops when it idles, so the greatest one counts.
PciePlace ReadPciePlace(const std::string& sysfs, absl::string_view bus_id);

// [device]: a number for each set of devices that share a bridge, 0 and up in the order of the
// devices: behind the innermost bridge that has several. Those that share none, or whose place is
// not known, are alone.
std::vector<int> SharedBridges(const std::vector<PciePlace>& places);

// One direction of such a slot, before packets and headers: 15.75 GB/s for 3, x16; 0: not known.
BytesPerSecond NominalPcieRate(int generation, int lanes);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_PCIE_PLACE_H_
