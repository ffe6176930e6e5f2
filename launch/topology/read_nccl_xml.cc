#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launch/config/closest_name.h"
#include "launch/topology/discovered_server.h"
#include "launch/topology/topology_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Half of the 18 us that a copy through the host takes from device to device.
constexpr Nanos kHostLatency(9'000);
// C2C between a Grace CPU and its GPU: 346 of 450 GB/s measured, half of 450 with both directions.
constexpr int64_t kC2cPercent = 77;
constexpr int64_t kC2cBothPercent = 50;
constexpr int kMostWires = 64;
constexpr int kDeepestXml = 64;

struct Gpu {
  pugi::xml_node node;
  int dev = 0;
  int sm = 0;
  int numa = 0;
  std::string bus;
  std::vector<pugi::xml_node> bridges;  // outermost first, without its own pci element
};

// NCCL writes each switch once, and no root ports or host bridges.
PciePath PathBetween(const Gpu& a, const Gpu& b) {
  const auto fork =
      std::mismatch(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  if (fork.first != a.bridges.begin()) {
    const bool same = fork.first == a.bridges.end() && fork.second == b.bridges.end();
    return same ? PciePath::kPix : PciePath::kPxb;
  }
  if (a.numa < 0 || b.numa < 0) return PciePath::kUnknown;
  return a.numa == b.numa ? PciePath::kNode : PciePath::kSys;
}

class XmlReader {
 public:
  XmlReader(absl::string_view text, absl::string_view name) : text_(text), name_(name) {}

  absl::StatusOr<DiscoveredTopology> Read(absl::string_view device);

 private:
  absl::Status WrongAt(ptrdiff_t offset, absl::string_view problem) const;
  absl::Status Wrong(pugi::xml_node node, absl::string_view problem) const {
    return WrongAt(std::max<ptrdiff_t>(node.offset_debug() - 1, 0), problem);
  }
  absl::StatusOr<int> Number(pugi::xml_node node, const char* attribute, int least, int most) const;
  absl::Status ReadSystem(pugi::xml_node system);
  absl::Status ReadPci(pugi::xml_node parent, int numa, std::vector<pugi::xml_node>& above);
  absl::Status ReadGpu(pugi::xml_node node, int numa, const std::vector<pugi::xml_node>& above);
  absl::Status NumberDevices();
  absl::Status NameKind(DiscoveredServer& server);
  absl::Status ReadLinks(DiscoveredServer& server);
  absl::Status ReadLink(pugi::xml_node link, int device, DiscoveredServer& server);
  absl::Status CheckLinks(const DiscoveredServer& server) const;
  absl::StatusOr<std::vector<PcieSwitch>> Switches();
  absl::StatusOr<PcieSwitch> UplinkOf(const Gpu& gpu);

  std::string text_;
  std::string name_;
  std::vector<Gpu> gpus_;
  std::vector<std::string> notes_;
  int pcie_generation_ = 3;  // of the kind of device
  bool has_fabric_ = false;
  std::set<std::string> absent_;  // peers that the file does not have
};

absl::Status XmlReader::WrongAt(ptrdiff_t offset, absl::string_view problem) const {
  const absl::string_view before =
      absl::string_view(text_).substr(0, static_cast<size_t>(std::max<ptrdiff_t>(offset, 0)));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_end = before.rfind('\n');
  const size_t column =
      before.size() - (line_end == absl::string_view::npos ? 0 : line_end + 1) + 1;
  return absl::InvalidArgumentError(absl::StrCat(name_, ":", line, ":", column, ": ", problem));
}

absl::StatusOr<int> XmlReader::Number(pugi::xml_node node, const char* attribute, int least,
                                      int most) const {
  const std::string where = absl::StrCat("<", node.name(), " ", attribute, ">");
  const pugi::xml_attribute found = node.attribute(attribute);
  if (!found) return Wrong(node, absl::StrCat(where, ": is missing; NCCL writes it"));
  int number = 0;
  if (!absl::SimpleAtoi(found.value(), &number) || number < least || number > most) {
    return Wrong(node, absl::StrCat(where, ": is ", QuoteForMessage(found.value()),
                                    "; must be a whole number from ", least, " to ", most));
  }
  return number;
}

absl::Status XmlReader::ReadGpu(pugi::xml_node node, int numa,
                                const std::vector<pugi::xml_node>& above) {
  Gpu gpu{.node = node, .numa = numa, .bridges = above};
  SIPHON_ASSIGN_OR_RETURN(gpu.dev, Number(node, "dev", 0, 1 << 20));
  SIPHON_ASSIGN_OR_RETURN(gpu.sm, Number(node, "sm", 1, 10'000));
  if (!above.empty()) {
    gpu.bus = above.back().attribute("busid").value();
    gpu.bridges.pop_back();
  }
  gpus_.push_back(std::move(gpu));
  if (gpus_.size() <= kMostDevices) return absl::OkStatus();
  return Wrong(node, absl::StrCat("has more than ", kMostDevices, " devices"));
}

absl::Status XmlReader::ReadPci(pugi::xml_node parent, int numa,
                                std::vector<pugi::xml_node>& above) {
  if (above.size() > kDeepestXml) {
    return Wrong(parent, absl::StrCat("nested deeper than ", kDeepestXml, " levels"));
  }
  for (const pugi::xml_node child : parent.children()) {
    const absl::string_view tag = child.name();
    if (tag == "gpu") SIPHON_RETURN_IF_ERROR(ReadGpu(child, numa, above));
    if (tag != "pci") continue;
    above.push_back(child);
    SIPHON_RETURN_IF_ERROR(ReadPci(child, numa, above));
    above.pop_back();
  }
  return absl::OkStatus();
}

absl::Status XmlReader::ReadSystem(pugi::xml_node system) {
  for (const pugi::xml_node cpu : system.children("cpu")) {
    // Virtual machines write -1: not known.
    SIPHON_ASSIGN_OR_RETURN(const int numa, Number(cpu, "numaid", -1, 1 << 20));
    std::vector<pugi::xml_node> above;
    SIPHON_RETURN_IF_ERROR(ReadPci(cpu, numa, above));
  }
  if (gpus_.empty()) return Wrong(system, "<system> has no <gpu>; a topology has devices");
  return NumberDevices();
}

absl::Status XmlReader::NumberDevices() {
  std::stable_sort(gpus_.begin(), gpus_.end(),
                   [](const Gpu& a, const Gpu& b) { return a.dev < b.dev; });
  bool gaps = false;
  for (size_t device = 0; device < gpus_.size(); ++device) {
    const Gpu& gpu = gpus_[device];
    if (device > 0 && gpu.dev == gpus_[device - 1].dev) {
      return Wrong(gpu.node, absl::StrCat("<gpu dev>: device ", gpu.dev,
                                          " is given twice; one server has it once"));
    }
    gaps = gaps || gpu.dev != static_cast<int>(device);
  }
  if (gaps) {
    notes_.push_back(absl::StrCat("the file has devices up to ", gpus_.back().dev,
                                  ", but not all; they are numbered 0 to ", gpus_.size() - 1));
  }
  return absl::OkStatus();
}

// Of the first device, as servers have one kind.
absl::Status XmlReader::NameKind(DiscoveredServer& server) {
  if (!server.device.empty()) {
    SIPHON_ASSIGN_OR_RETURN(server.links, FindLinkGeneration(server.device));
  } else {
    const int sm = gpus_.front().sm;
    server.links = LinkGenerationOf(sm);
    server.is_guess = server.links.has_value() && server.links->compute_capability != sm;
    if (server.is_guess) {
      notes_.push_back(absl::StrCat("ASSUMED: devices of compute capability ", sm, " are as ",
                                    server.links->device, "; --device says what they are"));
    }
  }
  if (server.links.has_value()) pcie_generation_ = server.links->pcie_generation;
  return absl::OkStatus();
}

absl::Status XmlReader::ReadLink(pugi::xml_node link, int device, DiscoveredServer& server) {
  SIPHON_ASSIGN_OR_RETURN(const int count, Number(link, "count", 1, kMostWires));
  const absl::string_view kind = link.attribute("tclass").value();
  if (absl::StartsWith(kind, "0x068000")) {
    has_fabric_ = true;
    server.fabric_wires[device] += count;
    return absl::OkStatus();
  }
  const std::string target = link.attribute("target").value();
  if (!absl::StartsWith(kind, "0x03")) {
    notes_.push_back(absl::StrCat("wires of device ", device, " to ", QuoteForMessage(target),
                                  " (class ", QuoteForMessage(kind), ") lead to no device"));
    return absl::OkStatus();
  }
  const auto peer =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.bus == target; });
  if (peer == gpus_.end()) {
    absent_.insert(target);
    return absl::OkStatus();
  }
  const auto to = static_cast<int>(peer - gpus_.begin());
  if (to == device) return Wrong(link, absl::StrCat("device ", device, " is wired to itself"));
  server.wires[device][to] += count;
  return absl::OkStatus();
}

absl::Status XmlReader::CheckLinks(const DiscoveredServer& server) const {
  for (size_t from = 0; from < gpus_.size(); ++from) {
    if (has_fabric_ && server.fabric_wires[from] == 0) {
      return Wrong(gpus_[from].node, absl::StrCat("device ", from,
                                                  " has no wires to the NVSwitches "
                                                  "that others are on; NCCL saw a broken fabric"));
    }
    for (size_t to = 0; to < from; ++to) {
      const int here = server.wires[from][to];
      const int there = server.wires[to][from];
      if (here == there) continue;
      return Wrong(gpus_[from].node,
                   absl::StrCat("device ", from, " has ", here, " wires to device ", to,
                                ", which has ", there, " back; a wire runs both ways"));
    }
  }
  return absl::OkStatus();
}

absl::Status XmlReader::ReadLinks(DiscoveredServer& server) {
  const size_t devices = gpus_.size();
  server.wires.assign(devices, std::vector<int>(devices));
  server.fabric_wires.assign(devices, 0);
  for (size_t device = 0; device < devices; ++device) {
    for (const pugi::xml_node link : gpus_[device].node.children("nvlink")) {
      SIPHON_RETURN_IF_ERROR(ReadLink(link, static_cast<int>(device), server));
    }
  }
  SIPHON_RETURN_IF_ERROR(CheckLinks(server));
  if (!absent_.empty()) {
    notes_.push_back(absl::StrCat("wires to ", absent_.size(),
                                  " devices that the file does not have are left out"));
  }
  if (!has_fabric_) {
    server.fabric_wires.clear();
    return absl::OkStatus();
  }
  for (size_t from = 0; from < devices; ++from) {
    for (size_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      server.wires[from][to] = std::min(server.fabric_wires[from], server.fabric_wires[to]);
    }
  }
  return absl::OkStatus();
}

// "16.0 GT/s PCIe": the first word counts.
int PcieGeneration(absl::string_view speed) {
  double transfers = 0;
  if (!absl::SimpleAtod(speed.substr(0, speed.find(' ')), &transfers)) return 0;
  constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32};
  for (int generation = 1; generation <= 5; ++generation) {
    if (transfers == kSpeeds[generation - 1]) return generation;
  }
  return 0;
}

absl::StatusOr<PcieSwitch> XmlReader::UplinkOf(const Gpu& gpu) {
  PcieSwitch uplink{.latency = kHostLatency};
  if (const pugi::xml_node c2c = gpu.node.child("c2c")) {
    SIPHON_ASSIGN_OR_RETURN(const int bandwidth, Number(c2c, "bw", 1, 10'000'000));  // MB/s each
    SIPHON_ASSIGN_OR_RETURN(const int count, Number(c2c, "count", 1, kMostWires));
    const BytesPerSecond nominal(int64_t{bandwidth} * count * 1'000'000);
    uplink.to_host = uplink.from_host = BytesPerSecond(nominal.value / 100 * kC2cPercent);
    uplink.to_host_both = uplink.from_host_both =
        BytesPerSecond(nominal.value / 100 * kC2cBothPercent);
    return uplink;
  }
  const pugi::xml_node top = gpu.bridges.empty() ? gpu.node.parent() : gpu.bridges.front();
  const absl::string_view speed = top.attribute("link_speed").value();
  int lanes = top.attribute("link_width").as_int(0);
  int generation = PcieGeneration(speed);
  if (generation == 0 || lanes < 1 || lanes > 16) {
    // Virtual machines do not show it.
    notes_.push_back(absl::StrCat("ASSUMED: the PCIe link of device ", &gpu - gpus_.data(), " is ",
                                  pcie_generation_, ".0 x16; the file has speed ",
                                  QuoteForMessage(speed), " and ", lanes, " lanes"));
    generation = pcie_generation_;
    lanes = 16;
  }
  const HostRates host = HostRatesOf(generation);
  const auto scaled = [lanes](BytesPerSecond rate) {
    return BytesPerSecond(rate.value / 16 * lanes);
  };
  uplink.to_host = scaled(host.to_host);
  uplink.from_host = scaled(host.from_host);
  uplink.to_host_both = scaled(host.to_host_both);
  uplink.from_host_both = scaled(host.from_host_both);
  return uplink;
}

absl::StatusOr<std::vector<PcieSwitch>> XmlReader::Switches() {
  std::map<ptrdiff_t, int> below;  // devices, by the place of the bridge
  for (const Gpu& gpu : gpus_) {
    for (const pugi::xml_node bridge : gpu.bridges) ++below[bridge.offset_debug()];
  }
  std::vector<PcieSwitch> switches;
  std::map<ptrdiff_t, size_t> known;
  for (size_t device = 0; device < gpus_.size(); ++device) {
    const Gpu& gpu = gpus_[device];
    const bool own_way = static_cast<bool>(gpu.node.child("c2c"));
    const auto shared =
        std::find_if(gpu.bridges.rbegin(), gpu.bridges.rend(),
                     [&](pugi::xml_node bridge) { return below.at(bridge.offset_debug()) > 1; });
    const bool alone = own_way || shared == gpu.bridges.rend();
    const ptrdiff_t place = alone ? gpu.node.offset_debug() : shared->offset_debug();
    const auto [entry, is_new] = known.emplace(place, switches.size());
    if (is_new) {
      SIPHON_ASSIGN_OR_RETURN(PcieSwitch uplink, UplinkOf(gpu));
      switches.push_back(std::move(uplink));
    }
    switches[entry->second].devices.emplace_back(static_cast<int>(device));
  }
  return switches;
}

absl::StatusOr<DiscoveredTopology> XmlReader::Read(absl::string_view device) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
  if (!parsed) return WrongAt(parsed.offset, absl::StrCat("not XML: ", parsed.description()));
  const pugi::xml_node system = document.child("system");
  if (!system) {
    return WrongAt(0, "has no <system>; give the file that NCCL_TOPO_DUMP_FILE names");
  }
  SIPHON_RETURN_IF_ERROR(ReadSystem(system));
  DiscoveredServer server{.source = "NCCL's XML", .device = std::string(device)};
  SIPHON_RETURN_IF_ERROR(NameKind(server));
  SIPHON_RETURN_IF_ERROR(ReadLinks(server));
  SIPHON_ASSIGN_OR_RETURN(server.switches, Switches());
  for (const Gpu& gpu : gpus_) {
    server.numa.push_back(gpu.numa);
    server.pcie_paths.emplace_back();
    for (const Gpu& to : gpus_) {
      server.pcie_paths.back().push_back(&to == &gpu ? PciePath::kUnknown : PathBetween(gpu, to));
    }
  }
  server.notes = std::move(notes_);
  absl::StatusOr<DiscoveredTopology> built = BuildTopology(server);
  if (!built.ok()) return Annotate(built.status(), name_);
  return built;
}

}  // namespace

absl::StatusOr<DiscoveredTopology> ParseNcclXml(absl::string_view text, absl::string_view name,
                                                absl::string_view device) {
  return XmlReader(text, name).Read(device);
}

}  // namespace siphon
