#include "planner/mapping/parking_demand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 60;

// Moments at which any curve changes, ascending.
std::vector<Nanos> Moments(const std::vector<HeldCurve>& curves) {
  std::vector<Nanos> moments;
  for (const HeldCurve& curve : curves) {
    for (const HeldPoint& point : curve) moments.push_back(point.time);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  return moments;
}

Bytes Above(Bytes bytes, Bytes limit) { return std::max(Bytes(0), bytes - limit); }

}  // namespace

ParkingDemand PeakParkingDemand(const std::vector<Bytes>& peaks,
                                const std::vector<Bytes>& capacity) {
  SIPHON_CHECK(peaks.size() == capacity.size(), "every worker has a capacity");
  ParkingDemand demand;
  for (size_t worker = 0; worker < peaks.size(); ++worker) {
    ParkingNeed& parking = demand.workers.emplace_back();
    if (capacity[worker] == Bytes(0)) continue;
    parking = {Above(peaks[worker], capacity[worker]), Above(capacity[worker], peaks[worker])};
  }
  return demand;
}

ParkingDemand ParkingDemandOverTime(const std::vector<HeldCurve>& curves,
                                    const std::vector<Bytes>& capacity) {
  SIPHON_CHECK(curves.size() == capacity.size(), "every worker has a capacity");
  ParkingDemand demand;
  demand.workers.resize(curves.size());
  std::vector<Bytes> least_free = capacity;
  std::vector<Bytes> held(curves.size());
  std::vector<size_t> next(curves.size());
  for (const Nanos now : Moments(curves)) {
    bool anything_parked = false;
    for (size_t worker = 0; worker < curves.size(); ++worker) {
      const HeldCurve& curve = curves[worker];
      while (next[worker] < curve.size() && curve[next[worker]].time <= now) {
        held[worker] = curve[next[worker]++].bytes;
      }
      if (capacity[worker] == Bytes(0)) continue;
      const Bytes parked = Above(held[worker], capacity[worker]);
      demand.workers[worker].parked = std::max(demand.workers[worker].parked, parked);
      anything_parked = anything_parked || parked > Bytes(0);
    }
    if (!anything_parked) continue;
    for (size_t worker = 0; worker < curves.size(); ++worker) {
      least_free[worker] = std::min(least_free[worker], Above(capacity[worker], held[worker]));
    }
  }
  for (size_t worker = 0; worker < curves.size(); ++worker) {
    demand.workers[worker].lendable = least_free[worker];
  }
  return demand;
}

absl::Status CheckParkingDemand(const ParkingDemand& demand, const Topology& topology) {
  if (demand.workers.size() > topology.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat(demand.workers.size(), " workers need as many ",
                                                   "devices; the topology has ",
                                                   DeviceCount(topology)));
  }
  Bytes sum;
  for (size_t worker = 0; worker < demand.workers.size(); ++worker) {
    const auto& [parked, lendable] = demand.workers[worker];
    for (const Bytes bytes : {parked, lendable}) {
      if (bytes < Bytes(0) || bytes.value > kMostBytes - sum.value) {
        return absl::InvalidArgumentError(
            absl::StrCat("worker ", worker, " parks ", parked.value, " bytes and lends ",
                         lendable.value, ": both must be 0 or more, all together at most 2^60"));
      }
      sum += bytes;
    }
  }
  for (const TopologyDevice& device : topology.devices) {
    if (device.memory.value > kMostBytes / DeviceCount(topology)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a device with ", device.memory.value, " bytes: all may have 2^60 at most"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMapping(const DeviceMapping& mapping, int workers, const Topology& topology) {
  if (static_cast<int>(mapping.device_of_worker.size()) != workers) {
    return absl::InvalidArgumentError(absl::StrCat("the map has ", mapping.device_of_worker.size(),
                                                   " entries for ", workers, " workers"));
  }
  std::vector<int> worker_of(topology.devices.size(), -1);
  for (int worker = 0; worker < workers; ++worker) {
    const int device = mapping.device_of_worker[worker].value;
    if (device < 0 || device >= DeviceCount(topology)) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", worker, " is mapped to device ",
                                                     device, ", but devices are 0 to ",
                                                     DeviceCount(topology) - 1));
    }
    if (worker_of[device] >= 0) {
      return absl::InvalidArgumentError(absl::StrCat("workers ", worker_of[device], " and ", worker,
                                                     " are both mapped to device ", device));
    }
    worker_of[device] = worker;
  }
  return absl::OkStatus();
}

}  // namespace siphon
