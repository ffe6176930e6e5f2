#include "launch/topology/pcie_path.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace siphon {
namespace {

constexpr std::pair<PciePath, absl::string_view> kPathNames[] = {
    {PciePath::kUnknown, "?"}, {PciePath::kPix, "PIX"},   {PciePath::kPxb, "PXB"},
    {PciePath::kPhb, "PHB"},   {PciePath::kNode, "NODE"}, {PciePath::kSys, "SYS"},
    {PciePath::kSys, "SOC"}};

}  // namespace

absl::string_view PciePathName(PciePath path) {
  return std::find_if(std::begin(kPathNames), std::end(kPathNames),
                      [path](const auto& entry) { return entry.first == path; })
      ->second;
}

std::optional<PciePath> FindPciePath(absl::string_view word) {
  for (const auto& [path, name] : kPathNames) {
    if (name == word && path != PciePath::kUnknown) return path;
  }
  return std::nullopt;
}

PciePath PciePathBetween(const PciePlace& a, const PciePlace& b) {
  const bool known_nodes = a.numa.has_value() && b.numa.has_value();
  if (known_nodes && a.numa != b.numa) return PciePath::kSys;
  // On the virtual bus of a machine that hides bridges, all devices sit below one host bridge.
  if (a.bridges.empty() || b.bridges.empty()) return PciePath::kUnknown;
  const auto fork =
      std::mismatch(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  if (fork.first != a.bridges.begin()) {
    // A switch is a bridge towards the host and one for each device below it.
    const ptrdiff_t further = std::max(a.bridges.end() - fork.first, b.bridges.end() - fork.second);
    return further <= 1 ? PciePath::kPix : PciePath::kPxb;
  }
  if (!a.host_bridge.empty() && a.host_bridge == b.host_bridge) return PciePath::kPhb;
  return known_nodes ? PciePath::kNode : PciePath::kUnknown;
}

PciePaths PciePathsBetween(const std::vector<PciePlace>& places) {
  PciePaths paths(places.size(), std::vector<PciePath>(places.size(), PciePath::kUnknown));
  for (size_t from = 0; from < places.size(); ++from) {
    for (size_t to = 0; to < places.size(); ++to) {
      if (from != to) paths[from][to] = PciePathBetween(places[from], places[to]);
    }
  }
  return paths;
}

}  // namespace siphon
