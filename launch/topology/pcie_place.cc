#include "launch/topology/pcie_place.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

// GT/s of a lane, by generation from 1 on.
constexpr std::array<double, 6> kTransfers = {2.5, 5, 8, 16, 32, 64};

template <typename T>
std::optional<T> ReadNumber(const fs::path& file) {
  std::ifstream stream(file);
  T number = 0;
  if (!(stream >> number)) return std::nullopt;
  return number;
}

// Of "16.0 GT/s PCIe".
int GenerationOf(double transfers) {
  int generation = 0;
  while (generation < static_cast<int>(kTransfers.size()) &&
         transfers >= kTransfers[static_cast<size_t>(generation)]) {
    ++generation;
  }
  return generation;
}

// "pci0000:3a", the root of a path.
bool IsHostBridge(const std::string& name) {
  return name.rfind("pci", 0) == 0 && name.find(':') != std::string::npos;
}

// "0000:3b:00.0".
bool IsBusId(const std::string& name) {
  return name.find(':') != std::string::npos && name.find('.') != std::string::npos &&
         !IsHostBridge(name);
}

}  // namespace

PciePlace ReadPciePlace(const std::string& sysfs, absl::string_view bus_id) {
  PciePlace place;
  const fs::path device = fs::path(sysfs) / "bus/pci/devices" / std::string(bus_id);
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  if (error) return place;
  for (const fs::path& part : real.parent_path()) {
    if (IsHostBridge(part.string())) place.host_bridge = part.string();
    if (IsBusId(part.string())) place.bridges.push_back(part.string());
  }
  const std::optional<int> numa = ReadNumber<int>(real / "numa_node");
  if (numa.has_value() && *numa >= 0) place.numa = numa;
  place.generation = GenerationOf(ReadNumber<double>(real / "max_link_speed").value_or(0));
  place.lanes = ReadNumber<int>(real / "max_link_width").value_or(0);
  return place;
}

std::vector<int> SharedBridges(const std::vector<PciePlace>& places) {
  std::map<std::string, int> behind;  // devices
  for (const PciePlace& place : places) {
    for (const std::string& bridge : place.bridges) ++behind[bridge];
  }
  std::map<std::string, int> numbers;
  std::vector<int> shared;
  int next = 0;
  for (const PciePlace& place : places) {
    const auto innermost =
        std::find_if(place.bridges.rbegin(), place.bridges.rend(),
                     [&](const std::string& bridge) { return behind[bridge] > 1; });
    if (innermost == place.bridges.rend()) {
      shared.push_back(next++);
      continue;
    }
    const auto [known, is_new] = numbers.emplace(*innermost, next);
    if (is_new) ++next;
    shared.push_back(known->second);
  }
  return shared;
}

BytesPerSecond NominalPcieRate(int generation, int lanes) {
  if (generation <= 0 || generation > static_cast<int>(kTransfers.size())) return BytesPerSecond(0);
  // 8 of 10 bits are data in the first two generations, 128 of 130 from then on.
  const double data = generation <= 2 ? 8.0 / 10 : 128.0 / 130;
  const double bits = kTransfers[static_cast<size_t>(generation - 1)] * 1e9 * data * lanes;
  return BytesPerSecond(std::llround(bits / 8));
}

}  // namespace siphon
