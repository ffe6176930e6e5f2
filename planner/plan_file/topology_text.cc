#include "planner/plan_file/topology_text.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan_file/plan_fields.h"
#include "planner/plan_file/plan_keys.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kMostDevices = 1 << 12;  // a line may name many: a large number makes no large table

const auto kAppendDevice = [](std::string* out, DeviceId device) {
  absl::StrAppend(out, device.value);
};

void AppendDevices(std::string& text, const std::vector<TopologyDevice>& devices) {
  for (size_t begin = 0; begin < devices.size();) {
    size_t end = begin + 1;
    while (end < devices.size() && devices[end] == devices[begin]) ++end;
    const PlanRange alike{static_cast<int>(begin), static_cast<int>(end)};
    absl::StrAppend(&text, "  ", RangeText(kDeviceWord, alike), ": ",
                    FieldList(kDeviceFields, devices[begin]), "\n");
    begin = end;
  }
}

bool ShareALine(const TopologyLink& a, const TopologyLink& b) {
  return a.from == b.from && a.rate == b.rate && a.latency == b.latency && a.wires == b.wires;
}

void AppendLinks(std::string& text, const std::vector<TopologyLink>& links) {
  for (size_t begin = 0; begin < links.size();) {
    std::vector<DeviceId> to;
    size_t end = begin;
    for (; end < links.size() && ShareALine(links[begin], links[end]); ++end) {
      to.push_back(links[end].to);
    }
    absl::StrAppend(&text, "  ", kLinksWord, " ", links[begin].from.value, " ", kArrowWord, " ",
                    absl::StrJoin(to, ", ", kAppendDevice), ": ",
                    FieldList(kLinkFields, links[begin]), "\n");
    begin = end;
  }
}

absl::Status Repeated(const PlanWord& number, size_t expected, absl::string_view what) {
  return ErrorAt(number, absl::StrCat(what, " ", QuotedWord(number.text),
                                      " is out of order; the next one is ", expected));
}

absl::Status ReadDevices(const PlanWord& numbers, const PlanWord& figures, Topology& topology) {
  SIPHON_ASSIGN_OR_RETURN(const PlanRange range, ParseRange(numbers, kDevicesWord));
  if (static_cast<size_t>(range.begin) != topology.devices.size()) {
    return Repeated(numbers, topology.devices.size(), kDeviceWord);
  }
  if (range.end > kMostDevices) {
    return ErrorAt(numbers, absl::StrCat("a topology has ", kMostDevices, " devices at most"));
  }
  TopologyDevice device;
  SIPHON_RETURN_IF_ERROR(ReadFieldList(kDeviceFields, SplitWord(figures, ','), device));
  topology.devices.resize(static_cast<size_t>(range.end), device);
  return absl::OkStatus();
}

absl::StatusOr<DeviceId> ReadDevice(const PlanWord& word, const Topology& topology) {
  SIPHON_ASSIGN_OR_RETURN(const int device, ParseSmallNumber(word, 0));
  if (device < DeviceCount(topology)) return DeviceId(device);
  return ErrorAt(word, absl::StrCat("device ", device, " is not described above; there are ",
                                    DeviceCount(topology)));
}

// "0 -> 1, 2"
absl::Status ReadLinks(const PlanWord& ends, const PlanWord& figures, Topology& topology) {
  const size_t arrow = ends.text.find(kArrowWord);
  if (arrow == absl::string_view::npos) {
    return ErrorAt(ends, absl::StrCat(QuotedWord(ends.text), " are no links; write '0 ", kArrowWord,
                                      " 1, 2: ' and their rate"));
  }
  TopologyLink link;
  SIPHON_ASSIGN_OR_RETURN(
      link.from,
      ReadDevice(WordIn(ends, absl::StripTrailingAsciiWhitespace(ends.text.substr(0, arrow))),
                 topology));
  SIPHON_RETURN_IF_ERROR(ReadFieldList(kLinkFields, SplitWord(figures, ','), link));
  const absl::string_view targets = ends.text.substr(arrow + kArrowWord.size());
  for (const PlanWord& target : SplitWord(WordIn(ends, targets), ',')) {
    SIPHON_ASSIGN_OR_RETURN(link.to, ReadDevice(target, topology));
    topology.links.push_back(link);
  }
  return absl::OkStatus();
}

// "devices 0 1, to_host 11.7GB/s, ..."
absl::Status ReadSwitch(const PlanWord& number, const PlanWord& figures, Topology& topology) {
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  if (static_cast<size_t>(index) != topology.switches.size()) {
    return Repeated(number, topology.switches.size(), kSwitchWord);
  }
  PcieSwitch one;
  std::vector<PlanWord> list = SplitWord(figures, ',');
  if (!list.empty()) {
    auto [name, rest] = CutFirstWord(list.front());
    if (name.text == kDevicesWord) {
      while (!rest.text.empty()) {
        const auto [device, behind] = CutFirstWord(rest);
        SIPHON_ASSIGN_OR_RETURN(one.devices.emplace_back(), ReadDevice(device, topology));
        rest = behind;
      }
      list.erase(list.begin());
    }
  }
  SIPHON_RETURN_IF_ERROR(ReadFieldList(kSwitchFields, list, one));
  topology.switches.push_back(std::move(one));
  return absl::OkStatus();
}

absl::Status ReadDrive(const PlanWord& number, const PlanWord& figures, Topology& topology) {
  SIPHON_ASSIGN_OR_RETURN(const int index, ParseSmallNumber(number, 0));
  if (static_cast<size_t>(index) != topology.drives.size()) {
    return Repeated(number, topology.drives.size(), kDriveWord);
  }
  return ReadFieldList(kDriveFields, SplitWord(figures, ','), topology.drives.emplace_back());
}

absl::Status ReadCopyEngines(const PlanWord& word, Topology& topology) {
  if (word.text != kOnePerPeerWord && word.text != kOneForAllPeersWord) {
    return ErrorAt(word, absl::StrCat(kCopyEnginesKey, " is ", QuotedWord(word.text), "; write ",
                                      kOnePerPeerWord, " or ", kOneForAllPeersWord));
  }
  topology.copy_engines =
      word.text == kOnePerPeerWord ? CopyEngines::kOnePerPeer : CopyEngines::kOneForAllPeers;
  return absl::OkStatus();
}

}  // namespace

std::string TopologyLines(const Topology& topology) {
  std::string text;
  if (!topology.name.empty()) text += KeyLine(kNameKey, topology.name);
  if (!topology.device_kind.empty()) text += KeyLine(kDeviceKindKey, topology.device_kind);
  const bool one_per_peer = topology.copy_engines == CopyEngines::kOnePerPeer;
  text += KeyLine(kCopyEnginesKey, one_per_peer ? kOnePerPeerWord : kOneForAllPeersWord);
  text += FieldLines(kTopologyFields, topology);
  text += FieldLines(kNetworkFields, topology.network);
  AppendDevices(text, topology.devices);
  AppendLinks(text, topology.links);
  for (size_t index = 0; index < topology.switches.size(); ++index) {
    const PcieSwitch& one = topology.switches[index];
    absl::StrAppend(&text, "  ", kSwitchWord, " ", index, ": ");
    if (!one.devices.empty()) {
      absl::StrAppend(&text, kDevicesWord, " ", absl::StrJoin(one.devices, " ", kAppendDevice),
                      ", ");
    }
    absl::StrAppend(&text, FieldList(kSwitchFields, one), "\n");
  }
  for (size_t index = 0; index < topology.drives.size(); ++index) {
    absl::StrAppend(&text, "  ", kDriveWord, " ", index, ": ",
                    FieldList(kDriveFields, topology.drives[index]), "\n");
  }
  return text;
}

absl::Status ReadTopologyLine(const PlanPair& pair, Topology& topology) {
  const auto [word, rest] = CutFirstWord(pair.key);
  if (word.text == kDeviceWord || word.text == kDevicesWord) {
    return ReadDevices(rest, pair.value, topology);
  }
  if (word.text == kLinksWord) return ReadLinks(rest, pair.value, topology);
  if (word.text == kSwitchWord) return ReadSwitch(rest, pair.value, topology);
  if (word.text == kDriveWord) return ReadDrive(rest, pair.value, topology);
  const absl::string_view key = pair.key.text;
  if (key == kNameKey)
    return Take<std::string>(std::string(pair.value.text), pair.value, topology.name);
  if (key == kDeviceKindKey)
    return Take<std::string>(std::string(pair.value.text), pair.value, topology.device_kind);
  if (key == kCopyEnginesKey) return ReadCopyEngines(pair.value, topology);
  if (HasField(kTopologyFields, key)) return ReadField(kTopologyFields, pair, topology);
  if (HasField(kNetworkFields, key)) return ReadField(kNetworkFields, pair, topology.network);
  return ErrorAt(
      pair.key,
      absl::StrCat("unknown key ", QuotedWord(key),
                   "; known: ", absl::StrJoin({kNameKey, kDeviceKindKey, kCopyEnginesKey}, ", "),
                   ", ", FieldNames(kTopologyFields), ", ", FieldNames(kNetworkFields), ", ",
                   absl::StrJoin({kDevicesWord, kLinksWord, kSwitchWord, kDriveWord}, ", ")));
}

}  // namespace siphon
