#ifndef SIPHON_PLANNER_DRAFTS_PRIVATE_WAYS_H_
#define SIPHON_PLANNER_DRAFTS_PRIVATE_WAYS_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "planner/ids.h"
#include "planner/mapping/parking_demand.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// How fast something is copied on some way at most, with nobody else on it.
struct WaySpeed {
  int64_t rate = 0;  // bytes a second; SwapFabric::kUnlimited: no limit
  Nanos latency;
  friend auto operator<=>(const WaySpeed&, const WaySpeed&) = default;
};

// What so many bytes take at a rate of a WaySpeed, rounded down; nothing where that is 0.
Nanos LeastCopyTime(Bytes bytes, int64_t rate);

// Workers with links, uplinks and drives of their own, each as fast as it is on any map whose first
// workers are on given devices: of a worker that has a device what this has, alone; of another one
// as good as the best free device's.
class PrivateWays {
 public:
  enum Kind { kToHost, kFromHost, kToDrive, kFromDrive, kParking };
  static constexpr int kKinds = kParking + 1;
  // From the one worker to the other.
  using Message = std::pair<WorkerId, WorkerId>;

  // The topology must outlive this.
  PrivateWays(const Topology& topology, int workers, std::vector<Message> messages);

  // From here on a worker parks so much, at the best rate at which lenders have room for all of it,
  // and they lend no more than that. Speeds are then those of maps on which all have room.
  // Requires: as many workers.
  void LendOnly(ParkingDemand demand) { demand_ = std::move(demand); }

  int OfWorker(int worker, Kind kind) const { return worker * kKinds + kind; }
  // A way on which everything is there at once.
  int Free() const { return workers_ * kKinds + static_cast<int>(messages_.size()); }
  int count() const { return Free() + 1; }
  // Those between workers come behind those of workers, in this order.
  const std::vector<Message>& messages() const { return messages_; }

  // [way]
  std::vector<WaySpeed> SpeedsOn(absl::Span<const DeviceId> placed) const;
  // How many bytes all lenders of a worker together take at most, while the slowest pair of devices
  // that lends takes so many.
  Bytes AllFor(Bytes stripe) const;

  // Of the ways, as a topology: worker w is on device w, and parks with LenderOf(w). What has a
  // rate is a way, and the rate is its number and one, not its speed.
  Topology Numbered() const;
  static int WayWithRate(BytesPerSecond rate) { return static_cast<int>(rate.value) - 1; }
  DeviceId LenderOf(int worker) const { return DeviceId(workers_ + worker); }
  DeviceId FreeLender() const { return DeviceId(2 * workers_); }

 private:
  void AddMessages();
  void AddParking();
  std::vector<Bytes> RoomsOfFree(absl::Span<const DeviceId> placed, const std::vector<int>& free,
                                 int owner) const;
  // Of an owner without a device the best.
  int64_t ParkingRate(int owner, absl::Span<const DeviceId> placed,
                      const std::vector<int>& free) const;
  int64_t ParkingRateOn(int device, int owner, absl::Span<const DeviceId> placed,
                        const std::vector<int>& free, const std::vector<Bytes>& free_rooms) const;
  BytesPerSecond Number(int way) const { return BytesPerSecond(way + 1); }

  const Topology& topology_;
  int workers_;
  std::vector<Message> messages_;
  std::vector<std::vector<WaySpeed>> device_ways_;     // [device][Kind]
  std::vector<std::vector<WaySpeed>> message_speeds_;  // [device][device]
  std::vector<std::vector<int64_t>> pairs_;            // [owner][lender]; 0: does not lend
  int64_t slowest_pair_ = 0;                           // of those that lend; 0: none does
  std::optional<ParkingDemand> demand_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_PRIVATE_WAYS_H_
