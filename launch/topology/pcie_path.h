#ifndef SIPHON_LAUNCH_TOPOLOGY_PCIE_PATH_H_
#define SIPHON_LAUNCH_TOPOLOGY_PCIE_PATH_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "launch/topology/pcie_place.h"

namespace siphon {

// How two devices meet by PCIe, whatever wires they have beside it, in the words of
// `nvidia-smi topo -m`.
enum class PciePath {
  kUnknown,
  kPix,   // one bridge or switch
  kPxb,   // several, but no host bridge
  kPhb,   // a host bridge
  kNode,  // several host bridges of a NUMA node
  kSys,   // the bus between NUMA nodes
};
using PciePaths = std::vector<std::vector<PciePath>>;  // [from][to]; not known on the diagonal

// What a file has for a path that is not known: "?" alone means something else in YAML.
inline constexpr absl::string_view kUnknownPath = "unknown";

// "PIX"; "?" for one that is not known.
absl::string_view PciePathName(PciePath path);
// Of such a word, or SOC, as SYS once was called; none: it is no path.
std::optional<PciePath> FindPciePath(absl::string_view word);

// As far as sysfs shows it: PIX and PXB by the bridges that both have, PHB by their host bridge,
// NODE and SYS by their nodes. Where a virtual machine hides bridges or nodes, it is not known.
PciePath PciePathBetween(const PciePlace& a, const PciePlace& b);
// Of all of them.
PciePaths PciePathsBetween(const std::vector<PciePlace>& places);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_PCIE_PATH_H_
