#include "launch/topology/link_generation.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/config/closest_name.h"

namespace siphon {
namespace {

constexpr BytesPerSecond Megabytes(int64_t count) { return BytesPerSecond(count * 1'000'000); }

const LinkGeneration& Known(absl::string_view device) {
  return *std::find_if(LinkGenerations().begin(), LinkGenerations().end(),
                       [device](const LinkGeneration& known) { return known.device == device; });
}

}  // namespace

HostRates HostRatesOf(int pcie_generation) {
  switch (pcie_generation) {
    case 1:
      return {Megabytes(3'100), Megabytes(3'100), {}, {}};
    case 2:
      return {Megabytes(6'200), Megabytes(6'200), {}, {}};
    case 3:
      return {Megabytes(11'700), Megabytes(11'700), {}, {}};
    case 4:
      return {Megabytes(26'000), Megabytes(26'000), Megabytes(19'000), Megabytes(19'000)};
    case 5:
      return {Megabytes(52'800), Megabytes(55'600), {}, {}};
    default:
      return {};
  }
}

const std::vector<LinkGeneration>& LinkGenerations() {
  // Measured: P100 and V100 by p2pBandwidthLatencyTest (Tartan; a Tianhe-2K node), one wire; A100
  // 276 GB/s by twelve wires (nvbandwidth), H100 374 by eighteen (NVIDIA/nccl issue 1264). A800 has
  // A100's wires. ASSUMED: H200 as H100; B300 83 % of nominal, as H100. Switches: DGX-1 and DGX
  // A100 have one for each two devices, and so have many servers with HGX H100; DGX H100 has one
  // each.
  static const auto* const generations = new std::vector<LinkGeneration>{
      {"P100", "P100", 60, 4, Megabytes(20'000), Megabytes(18'400), 3, 2},
      {"GTX-1080Ti", "GTX-1080Ti", 61, 0, {}, {}, 3},
      {"V100", "V100", 70, 6, Megabytes(25'000), Megabytes(24'200), 3, 2},
      {"A100", "A100", 80, 12, Megabytes(25'000), Megabytes(23'000), 4, 2},
      {"A800", "A100-80", 80, 8, Megabytes(25'000), Megabytes(23'000), 4, 2},
      {"H100", "H100", 90, 18, Megabytes(25'000), Megabytes(20'800), 5, 2},
      {"H200", "H200", 90, 18, Megabytes(25'000), Megabytes(20'800), 5, 2},
      {"B300", "B300", 100, 18, Megabytes(50'000), Megabytes(41'500), 5},
  };
  return *generations;
}

absl::StatusOr<LinkGeneration> FindLinkGeneration(absl::string_view device) {
  const std::string name = absl::AsciiStrToUpper(device);
  std::vector<std::string> known;
  for (const LinkGeneration& generation : LinkGenerations()) {
    const std::string known_name = absl::AsciiStrToUpper(generation.device);
    if (name == known_name || absl::StartsWith(name, known_name + "-")) {
      return generation;
    }
    known.push_back(generation.device);
  }
  return absl::NotFoundError(absl::StrCat("links of device ", QuoteForMessage(device),
                                          " are not known; known: ", absl::StrJoin(known, ", ")));
}

std::optional<LinkGeneration> LinkGenerationOf(int compute_capability) {
  std::optional<LinkGeneration> nearest;
  for (const LinkGeneration& generation : LinkGenerations()) {
    if (generation.compute_capability > compute_capability) continue;
    if (!nearest || generation.compute_capability > nearest->compute_capability) {
      nearest = generation;
    }
  }
  return nearest;
}

std::optional<LinkGeneration> GuessLinkGeneration(const std::vector<std::vector<int>>& wires) {
  int widest = 0;  // of one pair
  int narrowest = 1 << 20;
  int most = 0;  // of one device to all peers
  for (size_t from = 0; from < wires.size(); ++from) {
    most = std::max(most, std::accumulate(wires[from].begin(), wires[from].end(), 0));
    for (size_t to = 0; to < wires.size(); ++to) {
      if (from == to) continue;
      widest = std::max(widest, wires[from][to]);
      narrowest = std::min(narrowest, wires[from][to]);
    }
  }
  if (widest == 0) return std::nullopt;
  // More than any device has, so they go to a fabric, and every pair shows all wires of a device.
  const bool fabric = narrowest == widest && wires.size() > 2 && most > Known("H100").wires;
  if (fabric) {
    for (const LinkGeneration& generation : LinkGenerations()) {
      if (generation.wires == widest) return generation;
    }
  }
  if (widest == 1 && most <= Known("P100").wires && wires.size() > 4) return Known("P100");
  for (const absl::string_view device : {"V100", "A100", "H100"}) {
    if (most <= Known(device).wires) return Known(device);
  }
  return Known("H100");
}

}  // namespace siphon
