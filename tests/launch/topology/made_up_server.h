#ifndef SIPHON_TESTS_LAUNCH_TOPOLOGY_MADE_UP_SERVER_H_
#define SIPHON_TESTS_LAUNCH_TOPOLOGY_MADE_UP_SERVER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/status.h"
#include "swap/device/cuda_module.h"

namespace siphon {

// A server of devices whose copies take what a test says, without any device.
class MadeUpServer final : public CudaModule {
 public:
  // Devices are at 0000:10:00.0, 0000:11:00.0, ...
  MadeUpServer(int devices, const std::string& name) {
    for (int device = 0; device < devices; ++device) {
      devices_.push_back({.device = device,
                          .name = name,
                          .bus_id = absl::StrCat("0000:", 10 + device, ":00.0"),
                          .uuid = absl::StrCat("GPU-", device),
                          .compute_major = 7,
                          .memory = Bytes(int64_t{32} << 30)});
    }
  }

  void Link(int from, int to, double gigabytes) { peers_[{from, to}] = gigabytes; }
  void LinkAll(double gigabytes) {
    const auto devices = static_cast<int>(devices_.size());
    for (int pair = 0; pair < devices * devices; ++pair) {
      if (pair / devices != pair % devices) Link(pair / devices, pair % devices, gigabytes);
    }
  }
  // Of all that a device sends, or gets, at once.
  void LimitEach(double gigabytes) { each_ = gigabytes; }
  void Host(double to, double from) { to_host_ = to, from_host_ = from; }
  // Of both directions of a device's slot together.
  void LimitSlot(double gigabytes) { slot_ = gigabytes; }
  // What two devices have together, in one direction.
  void ShareUplink(int one, int other) { uplinks_.emplace_back(one, other); }
  // Copies between two devices end so.
  void Break(int from, int to, const absl::Status& status) { broken_[{from, to}] = status; }
  // Peers that a device can have at a time, as without NVSwitch.
  void LimitPeers(size_t most) { most_peers_ = most; }
  std::vector<CudaDeviceInfo>& devices() { return devices_; }
  int trials() const { return trials_; }

  absl::StatusOr<std::vector<CudaDeviceInfo>> Devices() const override { return devices_; }
  absl::Status Health(int) const override { return absl::OkStatus(); }
  const ProfilerRanges* Ranges() const override { return nullptr; }
  absl::StatusOr<bool> Reaches(int device, int peer) const override {
    return device == peer || peers_.contains({device, peer});
  }
  absl::StatusOr<std::vector<CopyFigure>> RunTrial(const CopyTrial& trial) const override {
    ++trials_;
    for (const CopyPath& path : trial.paths) SIPHON_RETURN_IF_ERROR(Connect(path));
    std::vector<double> rates;
    for (const CopyPath& path : trial.paths) rates.push_back(Alone(path));
    for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
      const auto sends = [&](const CopyPath& path) { return path.from == device && path.to; };
      const auto gets = [&](const CopyPath& path) { return path.to == device && path.from; };
      const auto uses_slot = [&](const CopyPath& path) {
        return !(path.from && path.to) && (path.from == device || path.to == device);
      };
      Limit(trial, sends, each_, &rates);
      Limit(trial, gets, each_, &rates);
      Limit(trial, uses_slot, slot_, &rates);
    }
    for (const std::pair<int, int>& uplink : uplinks_) {
      const auto is_behind = [&](const std::optional<int>& end) {
        return end == uplink.first || end == uplink.second;
      };
      const auto leaves = [&](const CopyPath& path) { return !path.to && is_behind(path.from); };
      const auto enters = [&](const CopyPath& path) { return !path.from && is_behind(path.to); };
      Limit(trial, leaves, to_host_, &rates);
      Limit(trial, enters, from_host_, &rates);
    }
    std::vector<CopyFigure> figures;
    const double longest = 1e9 * static_cast<double>(trial.bytes.value);
    for (const double rate : rates) {
      const Nanos time(kLatency.value + static_cast<int64_t>(longest / (rates.front() * 1e9)));
      figures.push_back(
          {Bytes(static_cast<int64_t>(rate * static_cast<double>(time.value))), time});
    }
    return figures;
  }

  // What probes do not ask for.
  absl::StatusOr<std::unique_ptr<DeviceBackend>> MakeBackend(
      const CudaBackendOptions&) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<ParkingArena>> MakeArena(int, Bytes) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<OpenedArena>> OpenArena(int, absl::string_view) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<PinnedPool>> MakePinnedPool(
      const PinnedPoolOptions&) const override {
    return absl::UnimplementedError("");
  }
  std::optional<int> NumaNode(int) const override { return std::nullopt; }
  absl::Status CopyNow(int, void*, const void*, size_t) const override {
    return absl::UnimplementedError("");
  }

 private:
  static constexpr Nanos kLatency{1500};

  absl::Status Connect(const CopyPath& path) const {
    if (!path.from.has_value() || !path.to.has_value()) return absl::OkStatus();
    const auto broken = broken_.find({*path.from, *path.to});
    if (broken != broken_.end()) return broken->second;
    std::set<int>& peers = peers_of_[path.issuer];
    const int peer = path.issuer == *path.from ? *path.to : *path.from;
    if (!peers.contains(peer) && peers.size() == most_peers_) {
      return absl::InternalError("too many peers");
    }
    peers.insert(peer);
    return absl::OkStatus();
  }
  double Alone(const CopyPath& path) const {
    if (!path.to.has_value()) return to_host_;
    if (!path.from.has_value()) return from_host_;
    return peers_.at({*path.from, *path.to});
  }
  template <typename Uses>
  static void Limit(const CopyTrial& trial, const Uses& uses, double most,
                    std::vector<double>* rates) {
    double together = 0;
    for (size_t path = 0; path < rates->size(); ++path) {
      if (uses(trial.paths[path])) together += (*rates)[path];
    }
    if (most <= 0 || together <= most) return;
    for (size_t path = 0; path < rates->size(); ++path) {
      if (uses(trial.paths[path])) (*rates)[path] *= most / together;
    }
  }

  std::vector<CudaDeviceInfo> devices_;
  std::map<std::pair<int, int>, double> peers_;
  std::vector<std::pair<int, int>> uplinks_;
  std::map<std::pair<int, int>, absl::Status> broken_;
  size_t most_peers_ = SIZE_MAX;
  mutable std::map<int, std::set<int>> peers_of_;
  double each_ = 0;
  double slot_ = 0;
  double to_host_ = 12;
  double from_host_ = 11;
  mutable int trials_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_TOPOLOGY_MADE_UP_SERVER_H_
