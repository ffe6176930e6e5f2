#ifndef SIPHON_LAUNCH_RUN_PARKING_TOPOLOGY_WAYS_H_
#define SIPHON_LAUNCH_RUN_PARKING_TOPOLOGY_WAYS_H_

#include <optional>
#include <vector>

#include "planner/topology.h"
#include "swap/device/link_queues.h"
#include "swap/device/shared_ways.h"

namespace siphon {

// How bytes go in one direction: what they take at least, and what they share with others.
struct LinkRoute {
  CopyLinkRate speed;
  std::vector<SharedWayId> over;
  friend bool operator==(const LinkRoute&, const LinkRoute&) = default;
};

// A topology as ways that links share, by the rules of the simulator (planner/simulator,
// StepResources): links with egress and ingress of their ends, or, where there is none, through the
// host; to the host by the switch's uplink, slower while both directions run; copies to and from a
// peer one at a time by the copy engine for it. No route: there is no way there.
class TopologyWays {
 public:
  explicit TopologyWays(const Topology& topology);

  const std::vector<SharedWay>& ways() const { return ways_; }

  // Of messages, which need no copy engine.
  std::optional<LinkRoute> Between(DeviceId from, DeviceId to) const;
  std::optional<LinkRoute> ToHost(DeviceId device) const;
  std::optional<LinkRoute> FromHost(DeviceId device) const;
  // Of what the device has on its drive (DriveOf).
  std::optional<LinkRoute> ToDrive(DeviceId device) const;
  std::optional<LinkRoute> FromDrive(DeviceId device) const;
  // Of what `owner` parks with `lender`, and has back.
  std::optional<LinkRoute> ToLender(DeviceId owner, DeviceId lender) const;
  std::optional<LinkRoute> FromLender(DeviceId owner, DeviceId lender) const;
  // How many devices share the device's way to the host; 0: there is none.
  int DevicesAtUplink(DeviceId device) const;
  // How many of a device's lenders, so many in all, share one copy engine.
  int PeersAtEngine(int lenders) const {
    return topology_.copy_engines == CopyEngines::kOneForAllPeers ? lenders : 1;
  }

 private:
  SharedWayId Engine(DeviceId owner, DeviceId lender) const;
  void AddEngines();
  std::optional<LinkRoute> WithDrive(std::optional<LinkRoute> host, DeviceId device,
                                     BytesPerSecond NvmeDrive::*rate, int direction) const;

  const Topology topology_;
  std::vector<SharedWay> ways_;
  int first_device_ = 0;  // egress and ingress of each
  int first_link_ = 0;
  int first_drive_ = 0;  // to and from each
  int first_engine_ = 0;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_PARKING_TOPOLOGY_WAYS_H_
