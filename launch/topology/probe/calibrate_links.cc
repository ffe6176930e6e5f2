#include "launch/topology/probe/calibrate_links.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/copy_trial.h"

namespace siphon {
namespace {

constexpr std::optional<int> kHost = std::nullopt;
constexpr Bytes kTiny{4 << 10};
constexpr double kSame = 1.05;
constexpr double kSlow = 0.6;  // of what a slot should give

BytesPerSecond Sum(const std::vector<BytesPerSecond>& rates) {
  BytesPerSecond sum;
  for (const BytesPerSecond rate : rates) sum += rate;
  return sum;
}

// 24187654321 is 24200000000.
BytesPerSecond ThreeDigits(BytesPerSecond rate) {
  int64_t digit = 1;
  while (rate.value / digit >= 1000) digit *= 10;
  return BytesPerSecond((rate.value + digit / 2) / digit * digit);
}

template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of as many wires as each device has to the fabric.
void WireEachPair(TopologyKeys* keys) {
  const auto devices = static_cast<size_t>(keys->devices);
  keys->wires.assign(devices, std::vector<int64_t>(devices, keys->fabric_wires));
  for (size_t device = 0; device < devices; ++device) keys->wires[device][device] = 0;
  keys->fabric_wires = 0;
}

class Calibration {
 public:
  Calibration(const CudaModule& module, const CalibrationSizes& sizes, ServerFacts* facts)
      : module_(module), sizes_(sizes), facts_(*facts), keys_(facts->keys) {}

  absl::Status MeasurePairs();
  absl::Status MeasurePeersAtOnce();
  absl::Status MeasureHost();
  void EvenOutAll();

 private:
  int devices() const { return static_cast<int>(keys_.devices); }
  int64_t WiresOf(int from, int to) const {
    return keys_.wires.empty() ? keys_.fabric_wires
                               : keys_.wires[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
  bool IsNear(int from, int to) const {
    return WiresOf(from, to) > 0 || facts_.shared_bridges[static_cast<size_t>(from)] ==
                                        facts_.shared_bridges[static_cast<size_t>(to)];
  }
  absl::StatusOr<bool> IsPair(int from, int to);
  absl::StatusOr<std::vector<std::pair<int, int>>> FindPairs();
  absl::Status MeasurePair(int from, int to);
  void SumUpPairs();
  absl::StatusOr<std::vector<CopyFigure>> Run(const std::vector<CopyPath>& paths, Bytes bytes);
  absl::StatusOr<std::vector<BytesPerSecond>> Rates(const std::vector<CopyPath>& paths);
  absl::StatusOr<Nanos> TinyCopy(const CopyPath& path);
  absl::Status MeasureSwitch(PcieSwitch* one);
  // Paths of the switch's devices to the host, from it, or both.
  static std::vector<CopyPath> Out(const std::vector<DeviceId>& devices);
  static std::vector<CopyPath> In(const std::vector<DeviceId>& devices);
  void WarnOfSlowSlot(DeviceId device, const char* way, BytesPerSecond rate);

  const CudaModule& module_;
  const CalibrationSizes sizes_;
  ServerFacts& facts_;
  TopologyKeys& keys_;
  std::vector<Nanos> latencies_;  // [link]
};

absl::StatusOr<std::vector<CopyFigure>> Calibration::Run(const std::vector<CopyPath>& paths,
                                                         Bytes bytes) {
  const bool is_tiny = bytes <= kTiny;
  const Bytes chunk = is_tiny ? bytes : Bytes(bytes.value / sizes_.chunks);
  return module_.RunTrial(
      {.paths = paths,
       .bytes = is_tiny ? bytes : chunk * sizes_.chunks,
       .chunk = chunk,
       .rounds = sizes_.rounds,
       .host_node = facts_.places[static_cast<size_t>(paths.front().issuer)].numa});
}

absl::StatusOr<std::vector<BytesPerSecond>> Calibration::Rates(const std::vector<CopyPath>& paths) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CopyFigure> figures, Run(paths, sizes_.bytes));
  std::vector<BytesPerSecond> rates;
  for (const CopyFigure& figure : figures) rates.push_back(RateOf(figure));
  return rates;
}

absl::StatusOr<Nanos> Calibration::TinyCopy(const CopyPath& path) {
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CopyFigure> figures, Run({path}, kTiny));
  return figures.front().time;
}

absl::StatusOr<bool> Calibration::IsPair(int from, int to) {
  if (from == to) return false;
  SIPHON_ASSIGN_OR_RETURN(const bool reaches, module_.Reaches(from, to));
  const bool has_wires = WiresOf(from, to) > 0;
  if (has_wires && !reaches) {
    facts_.notes.push_back(absl::StrCat("warning: GPU", from, " has NVLinks to GPU", to,
                                        ", but cannot reach it (MIG, IOMMU, a container?)"));
    // A fabric's wires are those of all pairs; from here on each pair has its own.
    if (keys_.wires.empty()) WireEachPair(&keys_);
    keys_.wires[static_cast<size_t>(from)][static_cast<size_t>(to)] = 0;
    keys_.wires[static_cast<size_t>(to)][static_cast<size_t>(from)] = 0;
    return false;
  }
  return reaches;
}

// Those across root ports come last: a device has eight peers at most where no NVSwitch is, and the
// fast ones are to be among them.
absl::StatusOr<std::vector<std::pair<int, int>>> Calibration::FindPairs() {
  std::vector<std::pair<int, int>> pairs;
  for (int from = 0; from < devices(); ++from) {
    for (int to = 0; to < devices(); ++to) {
      SIPHON_ASSIGN_OR_RETURN(const bool is_pair, IsPair(from, to));
      if (is_pair) pairs.emplace_back(from, to);
    }
  }
  std::stable_partition(pairs.begin(), pairs.end(), [this](const std::pair<int, int>& pair) {
    return IsNear(pair.first, pair.second);
  });
  return pairs;
}

absl::Status Calibration::MeasurePair(int from, int to) {
  SIPHON_ASSIGN_OR_RETURN(const auto push, Rates({{from, to, from}}));
  SIPHON_ASSIGN_OR_RETURN(const auto pull, Rates({{from, to, to}}));
  SIPHON_ASSIGN_OR_RETURN(const Nanos latency, TinyCopy({from, to, from}));
  latencies_.push_back(latency);
  keys_.links.push_back({.from = DeviceId(from),
                         .to = DeviceId(to),
                         .rate = std::min(push.front(), pull.front()),
                         .latency = Nanos(-1)});
  return absl::OkStatus();
}

absl::Status Calibration::MeasurePairs() {
  SIPHON_ASSIGN_OR_RETURN(const auto pairs, FindPairs());
  for (const auto& [from, to] : pairs) {
    const absl::Status measured = MeasurePair(from, to);
    // Chipsets, and an IOMMU in the way, break what CUDA promises of PCIe; such a pair goes through
    // the host. Nothing can be done on devices whose copies hang.
    const bool can_do_without = WiresOf(from, to) == 0 && !absl::IsDeadlineExceeded(measured);
    if (!measured.ok() && !can_do_without) return measured;
    if (measured.ok()) continue;
    facts_.notes.push_back(absl::StrCat("warning: GPU", from, " to GPU", to,
                                        " is taken to have no link: ", measured.message()));
  }
  SumUpPairs();
  return absl::OkStatus();
}

// Latencies of NVLinks are the server's where it has any, those of PCIe their links' own.
void Calibration::SumUpPairs() {
  std::vector<BytesPerSecond> of_a_wire;
  std::vector<Nanos> wired;
  std::vector<Nanos> unwired;
  for (size_t at = 0; at < keys_.links.size(); ++at) {
    const TopologyLink& link = keys_.links[at];
    const int64_t wires = WiresOf(link.from.value, link.to.value);
    (wires > 0 ? wired : unwired).push_back(latencies_[at]);
    if (wires > 0) of_a_wire.emplace_back(link.rate.value / wires);
  }
  if (of_a_wire.empty()) {
    // One device, or none that reaches another by wires: they are nobody's way.
    keys_.wires.clear();
    keys_.fabric_wires = 0;
    if (!unwired.empty()) keys_.latency = Median(unwired);
  } else {
    keys_.latency = Median(wired);
    keys_.wire_rate = ThreeDigits(Median(of_a_wire));
    for (TopologyLink& link : keys_.links) {
      if (WiresOf(link.from.value, link.to.value) == 0) link.latency = Median(unwired);
    }
  }
  std::sort(keys_.links.begin(), keys_.links.end(),
            [](const TopologyLink& a, const TopologyLink& b) {
              return std::pair(a.from, a.to) < std::pair(b.from, b.to);
            });
}

// Where there are wires, PCIe copies stay out of it: they would hold up the engine that a fabric's
// peers share, and devices without wires would say how little those with wires have.
absl::Status Calibration::MeasurePeersAtOnce() {
  const bool has_wires = !keys_.wires.empty() || keys_.fabric_wires > 0;
  for (int device = 0; device < devices(); ++device) {
    std::vector<CopyPath> out;
    std::vector<CopyPath> in;
    for (const TopologyLink& link : keys_.links) {
      if (has_wires && WiresOf(link.from.value, link.to.value) == 0) continue;
      if (link.from.value == device) out.push_back({device, link.to.value, device});
      if (link.to.value == device) in.push_back({link.from.value, device, link.from.value});
    }
    if (out.size() < 2 || in.size() < 2) continue;
    SIPHON_ASSIGN_OR_RETURN(const auto leaves, Rates(out));
    SIPHON_ASSIGN_OR_RETURN(const auto enters, Rates(in));
    const auto lower = [](BytesPerSecond& least, BytesPerSecond rate) {
      least = least.value == 0 ? rate : std::min(least, rate);
    };
    lower(keys_.device_egress, Sum(leaves));
    lower(keys_.device_ingress, Sum(enters));
  }
  keys_.device_egress = ThreeDigits(keys_.device_egress);
  keys_.device_ingress = ThreeDigits(keys_.device_ingress);
  return absl::OkStatus();
}

std::vector<CopyPath> Calibration::Out(const std::vector<DeviceId>& devices) {
  std::vector<CopyPath> paths;
  for (const DeviceId device : devices) paths.push_back({device.value, kHost, device.value});
  return paths;
}

std::vector<CopyPath> Calibration::In(const std::vector<DeviceId>& devices) {
  std::vector<CopyPath> paths;
  for (const DeviceId device : devices) paths.push_back({kHost, device.value, device.value});
  return paths;
}

void Calibration::WarnOfSlowSlot(DeviceId device, const char* way, BytesPerSecond rate) {
  const PciePlace& place = facts_.places[static_cast<size_t>(device.value)];
  const BytesPerSecond nominal = NominalPcieRate(place.generation, place.lanes);
  if (static_cast<double>(rate.value) >= kSlow * static_cast<double>(nominal.value)) return;
  facts_.notes.push_back(absl::StrCat("warning: GPU", device.value, " ", way,
                                      " the host: ", FormatRate(rate), " is below 60 % of the ",
                                      FormatRate(nominal), " of PCIe ", place.generation, ", x",
                                      place.lanes));
}

absl::Status Calibration::MeasureSwitch(PcieSwitch* one) {
  for (const DeviceId device : one->devices) {
    SIPHON_ASSIGN_OR_RETURN(const auto out, Rates(Out({device})));
    SIPHON_ASSIGN_OR_RETURN(const auto in, Rates(In({device})));
    WarnOfSlowSlot(device, "to", out.front());
    WarnOfSlowSlot(device, "from", in.front());
    one->to_host = std::max(one->to_host, out.front());
    one->from_host = std::max(one->from_host, in.front());
  }
  if (one->devices.size() > 1) {
    SIPHON_ASSIGN_OR_RETURN(const auto out, Rates(Out(one->devices)));
    SIPHON_ASSIGN_OR_RETURN(const auto in, Rates(In(one->devices)));
    one->to_host = std::max(one->to_host, Sum(out));
    one->from_host = std::max(one->from_host, Sum(in));
  }
  std::vector<CopyPath> both = Out(one->devices);
  for (const CopyPath& path : In(one->devices)) both.push_back(path);
  SIPHON_ASSIGN_OR_RETURN(std::vector<BytesPerSecond> rates, Rates(both));
  const auto half = rates.begin() + static_cast<ptrdiff_t>(one->devices.size());
  one->to_host_both = Sum({rates.begin(), half});
  one->from_host_both = Sum({half, rates.end()});
  SIPHON_ASSIGN_OR_RETURN(one->latency, TinyCopy(Out(one->devices).front()));
  return absl::OkStatus();
}

absl::Status Calibration::MeasureHost() {
  for (PcieSwitch& one : keys_.switches) SIPHON_RETURN_IF_ERROR(MeasureSwitch(&one));
  return absl::OkStatus();
}

void Calibration::EvenOutAll() {
  std::map<int64_t, std::vector<BytesPerSecond*>> of_wires;
  for (TopologyLink& link : keys_.links) {
    of_wires[WiresOf(link.from.value, link.to.value)].push_back(&link.rate);
  }
  for (auto& [wires, rates] : of_wires) EvenOut(std::move(rates));
  std::map<size_t, std::vector<PcieSwitch*>> of_size;
  for (PcieSwitch& one : keys_.switches) of_size[one.devices.size()].push_back(&one);
  for (auto& [size, switches] : of_size) {
    std::vector<Nanos> latencies;
    std::vector<BytesPerSecond*> rates[4];
    for (PcieSwitch* const one : switches) {
      latencies.push_back(one->latency);
      rates[0].push_back(&one->to_host);
      rates[1].push_back(&one->from_host);
      rates[2].push_back(&one->to_host_both);
      rates[3].push_back(&one->from_host_both);
    }
    for (std::vector<BytesPerSecond*>& alike : rates) EvenOut(std::move(alike));
    for (PcieSwitch* const one : switches) one->latency = Median(latencies);
  }
}

}  // namespace

void EvenOut(std::vector<BytesPerSecond*> rates) {
  std::sort(rates.begin(), rates.end(),
            [](const BytesPerSecond* a, const BytesPerSecond* b) { return *a < *b; });
  for (size_t begin = 0; begin < rates.size();) {
    const double most = kSame * static_cast<double>(rates[begin]->value);
    size_t end = begin;
    while (end < rates.size() && static_cast<double>(rates[end]->value) <= most) ++end;
    const BytesPerSecond even = ThreeDigits(*rates[begin + (end - begin) / 2]);
    for (; begin < end; ++begin) *rates[begin] = even;
  }
}

absl::Status CalibrateLinks(const CudaModule& module, const CalibrationSizes& sizes,
                            ServerFacts* facts) {
  Calibration calibration(module, sizes, facts);
  SIPHON_RETURN_IF_ERROR(calibration.MeasurePairs());
  SIPHON_RETURN_IF_ERROR(calibration.MeasurePeersAtOnce());
  SIPHON_RETURN_IF_ERROR(calibration.MeasureHost());
  calibration.EvenOutAll();
  return absl::OkStatus();
}

}  // namespace siphon
