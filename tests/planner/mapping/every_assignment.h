#ifndef SIPHON_TESTS_PLANNER_MAPPING_EVERY_ASSIGNMENT_H_
#define SIPHON_TESTS_PLANNER_MAPPING_EVERY_ASSIGNMENT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/mapping/parking_demand.h"
#include "planner/mapping/parking_flow.h"
#include "planner/topology.h"

namespace siphon {

// MPress, figure 6, as it stands there: tries every way to hand out every single byte, for tests
// with a handful of them. Nothing here is shared with the code under test.
class EveryAssignment {
 public:
  EveryAssignment(const Topology& topology, const std::vector<int>& device_of_worker,
                  const ParkingDemand& demand)
      : topology_(topology), map_(device_of_worker), demand_(demand) {
    const int devices = DeviceCount(topology);
    for (const TopologyDevice& device : topology.devices) room_.push_back(device.memory.value);
    for (size_t worker = 0; worker < map_.size(); ++worker) {
      room_[map_[worker]] = demand.workers[worker].lendable.value;
    }
    lent_.assign(map_.size(), std::vector<int64_t>(devices));
    rate_.assign(devices, std::vector<int64_t>(devices));
    for (int a = 0; a < devices; ++a) {
      for (int b = 0; b < devices; ++b) {
        const auto out = FindLink(topology, DeviceId(a), DeviceId(b));
        const auto back = FindLink(topology, DeviceId(b), DeviceId(a));
        if (out && back) rate_[a][b] = std::min(out->rate.value, back->rate.value);
      }
    }
  }

  ParkingTime Best() {
    Try(0, 0, map_.empty() ? 0 : demand_.workers[0].parked.value, 0);
    return *best_;
  }

 private:
  // Owner `worker` has `left` bytes for devices from `device` on.
  void Try(size_t worker, int device, int64_t left, int64_t unparked) {
    if (best_ && Bytes(unparked) > best_->unparked) return;
    if (worker == map_.size()) {
      const ParkingTime tried{Bytes(unparked), Time()};
      if (!best_ || tried < *best_) best_ = tried;
      return;
    }
    if (device == DeviceCount(topology_)) {
      const size_t next = worker + 1;
      Try(next, 0, next < map_.size() ? demand_.workers[next].parked.value : 0, unparked + left);
      return;
    }
    const bool linked = rate_[map_[worker]][device] > 0;
    const int64_t most = linked ? std::min(left, room_[device]) : 0;
    for (int64_t bytes = most; bytes >= 0; --bytes) {
      lent_[worker][device] = bytes;
      room_[device] -= bytes;
      Try(worker, device + 1, left - bytes, unparked);
      room_[device] += bytes;
    }
    lent_[worker][device] = 0;
  }

  static int64_t TimeFor(int64_t bytes, int64_t rate) {
    return rate == 0 ? 0 : (bytes * 1'000'000'000 + rate - 1) / rate;
  }

  int64_t Cap(int device) const {
    const int64_t out = topology_.devices[device].egress.value;
    const int64_t in = topology_.devices[device].ingress.value;
    return out == 0 ? in : in == 0 ? out : std::min(out, in);
  }

  Nanos Time() const {
    int64_t time = 0;
    std::vector<int64_t> taken(DeviceCount(topology_));
    for (size_t worker = 0; worker < map_.size(); ++worker) {
      int64_t parked = 0;
      long double one_after_the_other = 0;
      for (int device = 0; device < DeviceCount(topology_); ++device) {
        const int64_t bytes = lent_[worker][device];
        const int64_t rate = rate_[map_[worker]][device];
        parked += bytes;
        taken[device] += bytes;
        if (topology_.copy_engines == CopyEngines::kOnePerPeer) {
          time = std::max(time, TimeFor(bytes, rate));
        } else if (bytes > 0 && rate > 0) {
          one_after_the_other +=
              1e9L * static_cast<long double>(bytes) / static_cast<long double>(rate);
        }
      }
      const auto engine = static_cast<int64_t>(std::ceil(one_after_the_other - 1e-6L));
      time = std::max({time, engine, TimeFor(parked, Cap(map_[worker]))});
    }
    for (int device = 0; device < DeviceCount(topology_); ++device) {
      time = std::max(time, TimeFor(taken[device], Cap(device)));
    }
    return Nanos(time);
  }

  const Topology& topology_;
  std::vector<int> map_;
  const ParkingDemand& demand_;
  std::vector<int64_t> room_;               // [device], bytes left
  std::vector<std::vector<int64_t>> lent_;  // [worker][device]
  std::vector<std::vector<int64_t>> rate_;  // [a][b]; 0: no link
  std::optional<ParkingTime> best_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_PLANNER_MAPPING_EVERY_ASSIGNMENT_H_
