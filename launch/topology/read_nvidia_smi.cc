#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/config/closest_name.h"
#include "launch/topology/discovered_server.h"
#include "launch/topology/pcie_path.h"
#include "launch/topology/server_facts.h"
#include "launch/topology/topology_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Half of the 18 us that a copy through the host takes from device to device.
constexpr Nanos kHostLatency(9'000);

struct Word {
  std::string text;
  int line = 0;
  int column = 0;  // both from 1
};
using Words = std::vector<Word>;

// Of each line, without terminal colours.
std::vector<Words> WordsOf(absl::string_view text) {
  std::vector<Words> lines;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    lines.emplace_back();
    bool in_word = false;
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '\x1b') {  // up to the letter that ends the sequence
        while (at + 1 < line.size() && !absl::ascii_isalpha(line[at])) ++at;
        continue;
      }
      const bool blank = absl::ascii_isspace(static_cast<unsigned char>(line[at]));
      if (!blank && !in_word) lines.back().push_back({"", number, static_cast<int>(at) + 1});
      if (!blank) lines.back().back().text += line[at];
      in_word = !blank;
    }
  }
  return lines;
}

// "GPU12" is 12; -1 for other words.
int DeviceOf(absl::string_view word) {
  int device = -1;
  if (!absl::ConsumePrefix(&word, "GPU")) return -1;
  const char* end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, device);
  return result.ec == std::errc() && result.ptr == end ? device : -1;
}

// "NV12" is 12; -1 for other words.
int WiresOf(absl::string_view cell) {
  int wires = -1;
  if (!absl::ConsumePrefix(&cell, "NV")) return -1;
  const char* end = cell.data() + cell.size();
  const auto result = std::from_chars(cell.data(), end, wires);
  return result.ec == std::errc() && result.ptr == end && wires > 0 && wires <= 64 ? wires : -1;
}

// Two devices a switch.
bool SharesSwitches(const std::optional<LinkGeneration>& links) {
  return links.has_value() && links->devices_a_switch == 2;
}

// Where the matrix does not tell switches.
std::string SwitchNote(const std::optional<LinkGeneration>& links) {
  return absl::StrCat(
      "ASSUMED: ",
      SharesSwitches(links)
          ? absl::StrCat("neighbours on a NUMA node share a PCIe switch, as on servers with ",
                         links->device)
          : "every device has a way to the host of its own, though it may share one",
      "; NV# without network cards does not tell switches, --probe and --nccl_xml do");
}

class MatrixReader {
 public:
  explicit MatrixReader(absl::string_view name) : name_(name) {}

  absl::Status Read(absl::string_view text);
  absl::StatusOr<DiscoveredTopology> Build(absl::string_view device) const;

 private:
  absl::Status Wrong(const Word& word, absl::string_view problem) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", word.line, ":", word.column, ": ", problem));
  }
  absl::Status ReadHeader(const Words& header);
  absl::Status ReadRow(const Words& row);
  void ReadListed(const Words& words);
  absl::Status CheckCell(int device, int column, const Word& cell) const;
  absl::Status CheckSymmetry() const;
  std::vector<int> Numa() const;
  PciePaths Paths() const;
  bool Has(absl::string_view path) const;
  bool TellsSwitches() const;
  std::vector<std::vector<DeviceId>> Groups() const;
  std::vector<std::vector<DeviceId>> PairsOfNodes() const;
  int devices() const { return static_cast<int>(rows_.size()); }

  std::string name_;
  int columns_ = 0;  // devices and network cards
  int device_columns_ = 0;
  bool has_numa_ = false;
  std::vector<Words> rows_;         // [device]: its cells, without those behind the columns
  std::vector<std::string> nodes_;  // [device]: NUMA affinity, or the CPUs, or empty
  std::string listed_;              // kind of the first device by nvidia-smi -L; empty: not told
  bool has_list_ = false;
  bool is_mixed_ = false;  // others are listed as of another kind
};

absl::Status MatrixReader::ReadHeader(const Words& header) {
  for (const Word& word : header) {
    if (word.text == "CPU" || word.text == "NUMA") break;
    ++columns_;
    const int device = DeviceOf(word.text);
    if (device < 0) continue;
    if (device != device_columns_) {
      return Wrong(word, absl::StrCat(word.text, " stands where GPU", device_columns_,
                                      " should; give the whole matrix"));
    }
    ++device_columns_;
  }
  has_numa_ = std::any_of(header.begin(), header.end(),
                          [](const Word& word) { return word.text == "NUMA"; });
  if (device_columns_ <= kMostDevices) return absl::OkStatus();
  return Wrong(header[0],
               absl::StrCat("has ", device_columns_, " devices; at most ", kMostDevices));
}

absl::Status MatrixReader::CheckCell(int device, int column, const Word& cell) const {
  if ((cell.text == "X") != (device == column)) {
    return Wrong(cell, absl::StrCat("row GPU", device, ", column ", column, ": is ",
                                    QuoteForMessage(cell.text),
                                    "; X stands on the diagonal and "
                                    "only there"));
  }
  if (cell.text == "X" || FindPciePath(cell.text).has_value() || WiresOf(cell.text) > 0)
    return absl::OkStatus();
  return Wrong(cell, absl::StrCat("unknown connection ", QuoteForMessage(cell.text),
                                  "; known: X, NV1 and more, PIX, PXB, PHB, NODE, SYS"));
}

absl::Status MatrixReader::ReadRow(const Words& row) {
  const int device = devices();
  if (DeviceOf(row[0].text) != device) {
    return Wrong(row[0], absl::StrCat("row ", QuoteForMessage(row[0].text), " stands where GPU",
                                      device, " should; give the whole matrix"));
  }
  if (static_cast<int>(row.size()) - 1 < columns_) {
    return Wrong(row[0], absl::StrCat("row GPU", device, " has ", row.size() - 1, " cells for ",
                                      columns_, " columns; give the whole matrix"));
  }
  Words cells(row.begin() + 1, row.begin() + 1 + columns_);
  for (int column = 0; column < columns_; ++column) {
    SIPHON_RETURN_IF_ERROR(CheckCell(device, column, cells[column]));
  }
  rows_.push_back(std::move(cells));
  const size_t node = static_cast<size_t>(columns_) + (has_numa_ ? 2 : 1);
  nodes_.push_back(node < row.size() ? row[node].text : "");
  return absl::OkStatus();
}

absl::Status MatrixReader::CheckSymmetry() const {
  for (int from = 0; from < devices(); ++from) {
    for (int to = 0; to < from; ++to) {
      const Word& here = rows_[from][to];
      const Word& there = rows_[to][from];
      if (here.text == there.text) continue;
      return Wrong(here, absl::StrCat("row GPU", from, ", column ", to, ": is ", here.text,
                                      ", but row GPU", to, ", column ", from, " is ", there.text,
                                      "; connections are the same both ways"));
    }
  }
  return absl::OkStatus();
}

// "GPU 0: Tesla V100-SXM2-32GB (UUID: ..)", as nvidia-smi -L prints it.
void MatrixReader::ReadListed(const Words& words) {
  std::string name;
  Bytes memory;
  for (size_t at = 2; at < words.size() && words[at].text[0] != '('; ++at) {
    absl::StrAppend(&name, name.empty() ? "" : " ", words[at].text);
    for (const absl::string_view part : absl::StrSplit(words[at].text, '-')) {
      const absl::StatusOr<Bytes> size = ParseBytes(part);
      if (size.ok()) memory = *size;
    }
  }
  const std::string kind = DeviceKindOf(name, memory);
  if (!has_list_) listed_ = kind;
  is_mixed_ = is_mixed_ || kind != listed_;
  has_list_ = true;
}

absl::Status MatrixReader::Read(absl::string_view text) {
  bool has_header = false;
  const Words* header = nullptr;
  const std::vector<Words> lines = WordsOf(text);
  for (const Words& words : lines) {
    if (words.empty()) continue;
    if (words[0].text == "GPU" && words.size() > 2) {
      ReadListed(words);
    } else if (!has_header) {
      // The header's first word is a row's, too; a row goes on with a cell.
      has_header = words[0].text == "GPU0" && (words.size() == 1 || words[1].text != "X");
      if (has_header) {
        header = &words;
        SIPHON_RETURN_IF_ERROR(ReadHeader(words));
      }
    } else if (DeviceOf(words[0].text) >= 0 && devices() < device_columns_) {
      SIPHON_RETURN_IF_ERROR(ReadRow(words));
    }
  }
  if (has_header && devices() == device_columns_) return CheckSymmetry();
  if (!has_header) {
    return absl::InvalidArgumentError(absl::StrCat(
        name_,
        ":1:1: has no line that begins with GPU0 GPU1; give the text of nvidia-smi topo "
        "-m"));
  }
  return Wrong(header->front(), absl::StrCat("has ", devices(), " rows for ", device_columns_,
                                             " devices; give the whole matrix"));
}

// As the cells say; not known where NV# hides it. Empty: nowhere known.
PciePaths MatrixReader::Paths() const {
  PciePaths paths;
  bool any = false;
  for (const Words& row : rows_) {
    paths.emplace_back();
    for (int to = 0; to < devices(); ++to) {
      const std::optional<PciePath> path = FindPciePath(row[to].text);
      paths.back().push_back(path.value_or(PciePath::kUnknown));
      any = any || path.has_value();
    }
  }
  return any ? paths : PciePaths();
}

// The nodes' own numbers where they are numbers, else 0, 1, .. as they come; -1 where a virtual
// machine hides them.
std::vector<int> MatrixReader::Numa() const {
  const bool hidden = std::any_of(nodes_.begin(), nodes_.end(), [](const std::string& node) {
    return node.empty() || node == "N/A";
  });
  if (hidden) return std::vector<int>(nodes_.size(), -1);
  std::vector<int> numa;
  std::map<std::string, int> seen;
  bool numbers = has_numa_;
  for (const std::string& node : nodes_) {
    int number = 0;
    const char* end = node.data() + node.size();
    const auto result = std::from_chars(node.data(), end, number);
    numbers = numbers && result.ec == std::errc() && result.ptr == end && number >= 0;
    numa.push_back(number);
    seen.emplace(node, static_cast<int>(seen.size()));
  }
  if (numbers) return numa;
  for (int device = 0; device < devices(); ++device) numa[device] = seen.at(nodes_[device]);
  return numa;
}

bool MatrixReader::Has(absl::string_view path) const {
  return std::any_of(rows_.begin(), rows_.end(), [path](const Words& row) {
    return std::any_of(row.begin(), row.end(),
                       [path](const Word& cell) { return cell.text == path; });
  });
}

// NV# hides where two devices meet by PCIe; a network card next to both would tell.
bool MatrixReader::TellsSwitches() const {
  if (columns_ > devices() || Has("PIX") || Has("PXB")) return true;
  return !std::any_of(rows_.begin(), rows_.end(), [](const Words& row) {
    return std::any_of(row.begin(), row.end(),
                       [](const Word& cell) { return WiresOf(cell.text) > 0; });
  });
}

// Neighbours on a node by two, where nothing says that they meet further away.
std::vector<std::vector<DeviceId>> MatrixReader::PairsOfNodes() const {
  std::vector<std::vector<DeviceId>> groups;
  std::map<std::string, int> single;  // [node]: the last device there, if it has no neighbour yet
  std::map<int, size_t> group_of;
  for (int device = 0; device < devices(); ++device) {
    const auto found = single.find(nodes_[device]);
    if (found != single.end() && WiresOf(rows_[device][found->second].text) > 0) {
      groups[group_of.at(found->second)].emplace_back(device);
      single.erase(found);
      continue;
    }
    single[nodes_[device]] = device;
    group_of[device] = groups.size();
    groups.push_back({DeviceId(device)});
  }
  return groups;
}

std::vector<std::vector<DeviceId>> MatrixReader::Groups() const {
  const absl::string_view near = Has("PIX") ? "PIX" : "PXB";
  std::vector<int> group(devices());
  std::iota(group.begin(), group.end(), 0);
  const auto join = [&group](int a, int b) {
    const int from = std::max(group[a], group[b]);
    const int to = std::min(group[a], group[b]);
    std::replace(group.begin(), group.end(), from, to);
  };
  for (int column = 0; column < columns_; ++column) {
    int first = column < devices() ? column : -1;
    for (int device = 0; device < devices(); ++device) {
      if (rows_[device][column].text != near) continue;
      if (first < 0) first = device;
      join(first, device);
    }
  }
  std::map<int, std::vector<DeviceId>> groups;
  for (int device = 0; device < devices(); ++device) groups[group[device]].emplace_back(device);
  std::vector<std::vector<DeviceId>> list;
  for (auto& [first, members] : groups) list.push_back(std::move(members));
  return list;
}

absl::StatusOr<DiscoveredTopology> MatrixReader::Build(absl::string_view device) const {
  DiscoveredServer server{.source = "nvidia-smi topo -m",
                          .device = device.empty() ? listed_ : std::string(device),
                          .pcie_paths = Paths(),
                          .numa = Numa()};
  for (const Words& row : rows_) {
    server.wires.emplace_back();
    for (int to = 0; to < devices(); ++to) {
      server.wires.back().push_back(std::max(0, WiresOf(row[to].text)));
    }
  }
  if (device.empty() && is_mixed_) {
    server.notes.emplace_back(
        "warning: nvidia-smi -L lists devices of several kinds; all are planned for as the first");
  }
  if (!server.device.empty()) {
    SIPHON_ASSIGN_OR_RETURN(server.links, FindLinkGeneration(server.device));
  } else {
    server.links = GuessLinkGeneration(server.wires);
    server.is_guess = server.links.has_value();
    server.notes.push_back(
        server.is_guess ? absl::StrCat("ASSUMED: devices are ", server.links->device,
                                       " by their wires; --device says what they are")
                        : "ASSUMED: PCIe is 3.0, as no wires tell the kind of device; --device "
                          "says what they are");
  }
  for (const std::vector<int>& row : server.wires) {
    const int all = std::accumulate(row.begin(), row.end(), 0);
    if (!server.links.has_value() || all <= server.links->wires) continue;
    // More than a device has: each pair shows all wires of a device, which go to switches.
    server.fabric_wires.clear();
    for (const std::vector<int>& other : server.wires) {
      server.fabric_wires.push_back(*std::max_element(other.begin(), other.end()));
    }
  }
  const HostRates host = HostRatesOf(server.links.has_value() ? server.links->pcie_generation : 3);
  const bool tells_switches = TellsSwitches();
  if (!tells_switches) server.notes.push_back(SwitchNote(server.links));
  const bool pairs = !tells_switches && SharesSwitches(server.links);
  for (std::vector<DeviceId>& group : pairs ? PairsOfNodes() : Groups()) {
    server.switches.push_back({std::move(group), host.to_host, host.from_host, host.to_host_both,
                               host.from_host_both, kHostLatency});
  }
  absl::StatusOr<DiscoveredTopology> built = BuildTopology(server);
  if (!built.ok()) return Annotate(built.status(), name_);
  return built;
}

}  // namespace

absl::StatusOr<DiscoveredTopology> ParseNvidiaSmi(absl::string_view text, absl::string_view name,
                                                  absl::string_view device) {
  MatrixReader reader(name);
  SIPHON_RETURN_IF_ERROR(reader.Read(text));
  return reader.Build(device);
}

}  // namespace siphon
