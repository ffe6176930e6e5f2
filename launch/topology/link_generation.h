#ifndef SIPHON_LAUNCH_TOPOLOGY_LINK_GENERATION_H_
#define SIPHON_LAUNCH_TOPOLOGY_LINK_GENERATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What a PCIe x16 slot gives; the fields are those of PcieSwitch.
struct HostRates {
  BytesPerSecond to_host;
  BytesPerSecond from_host;
  BytesPerSecond to_host_both;
  BytesPerSecond from_host_both;
};

// Measured, by PCIe generation. Generations 1 and 2 were not measured and get 78 % of their nominal
// rate, as generation 3 reaches; 6 and above nothing (0: not known).
// 3: MPress, figure 4 (p3dn.24xlarge). 4: nvbandwidth's sample. 5: nvbandwidth issue 24.
HostRates HostRatesOf(int pcie_generation);

// The links of a kind of device: counts of links become rates by it.
struct LinkGeneration {
  std::string device;       // "V100"
  std::string kind;         // that computes like it, as devices.def names it
  int compute_capability;   // 70; NCCL's "sm"
  int wires;                // of one device; 0: it has no NVLinks
  BytesPerSecond nominal;   // of one wire in one direction
  BytesPerSecond measured;  // likewise, large copies
  int pcie_generation;
  int devices_a_switch = 1;  // PCIe's, on servers with eight of them; 1: each has its own
};

const std::vector<LinkGeneration>& LinkGenerations();

// By the device's name, upper or lower case; a size behind it ("V100-32") does not matter.
// Errors: NotFound, known ones listed.
absl::StatusOr<LinkGeneration> FindLinkGeneration(absl::string_view device);
// By compute capability; the nearest below, if there is one: 103 has the links of 100.
std::optional<LinkGeneration> LinkGenerationOf(int compute_capability);
// The kind of device that boards with such wires have (entries [from][to], symmetric); none when
// there are no wires. A guess, to be named as one.
std::optional<LinkGeneration> GuessLinkGeneration(const std::vector<std::vector<int>>& wires);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_LINK_GENERATION_H_
