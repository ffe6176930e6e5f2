#ifndef SIPHON_PLANNER_SIMULATOR_STEP_RESOURCES_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_RESOURCES_H_

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/ids.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/simulator/simulate.h"
#include "planner/topology.h"

namespace siphon {

// How a copy goes: one at a time in its lane, through what it shares with others.
struct Route {
  LaneId lane;
  PathId path;
  Nanos latency;
};

// Messages of one channel keep their order; those of different channels do not wait for each other.
enum class MessageChannel { kForward, kBackward, kGradients };

// Seen from the device: to the host or to a peer, and back.
enum class CopyDirection { kOut, kIn };

// The lanes and shared capacities of a topology (or of workers connected by a transport alone), put
// into a task graph.
class StepResources {
 public:
  // All must outlive this. `device_of_worker` has one entry a worker.
  StepResources(const Topology& topology, const TransportCosts& transport,
                const std::vector<DeviceId>& device_of_worker, TaskGraph& graph);

  LaneId ComputeLane(int worker) const { return compute_lanes_[worker]; }

  // Directly where there is a link, else through the host, or the network to another server.
  // Errors: InvalidArgument when there is neither.
  absl::StatusOr<Route> Message(int from, int to, MessageChannel channel);
  // By the worker's copy engine for that direction. Errors: InvalidArgument when its device is
  // behind no switch.
  absl::StatusOr<Route> HostCopy(int worker, CopyDirection direction);
  // The same way in, but beside the copy engine: what waits for a step on the host holds up no copy
  // that is ready before. Errors: as for HostCopy.
  absl::StatusOr<Route> ParametersFromHost(int worker);
  // Parks data of `owner` on another device, or brings them back, by the owner's copy engine for
  // this peer, or for all of them. Errors: as for Message.
  absl::StatusOr<Route> PeerCopy(int owner, DeviceId lender, CopyDirection direction);
  // To or from the drive of the worker's device, through the host. Errors: as for HostCopy.
  // Requires: the topology has drives.
  absl::StatusOr<Route> DriveCopy(int worker, CopyDirection direction);
  // Where optimizer steps on the worker's host are computed, one at a time.
  LaneId HostSteps(int worker);

  // [lane]: name of a copy lane; empty for a compute lane.
  const std::vector<std::string>& lane_names() const { return lane_names_; }

 private:
  struct Way {
    PathId path;
    Nanos latency;
  };

  void AddUplinks();
  void AddLinks();
  void AddDrives();
  LaneId NamedLane(const std::string& name);
  absl::StatusOr<Way> BetweenDevices(DeviceId from, DeviceId to);
  Way BetweenServers(int from, int to);
  Way BetweenWorkers(int from, int to);
  absl::StatusOr<Way> BetweenPeers(int owner, DeviceId lender, CopyDirection direction);
  // A part of the way between the worker's device and the host.
  struct HostWay {
    CapacityId capacity;
    Nanos latency;
  };
  absl::StatusOr<HostWay> ToOrFromHost(int worker, CopyDirection direction) const;
  absl::StatusOr<int> FindSwitch(DeviceId device) const;

  const Topology& topology_;
  const TransportCosts& transport_;
  const std::vector<DeviceId>& device_of_worker_;
  TaskGraph& graph_;
  std::vector<LaneId> compute_lanes_;
  std::vector<std::string> lane_names_;
  std::vector<int> switch_of_;       // [device]; -1: none
  std::vector<CapacityId> to_host_;  // [switch]
  std::vector<CapacityId> from_host_;
  std::vector<CapacityId> drive_write_;  // [drive]
  std::vector<CapacityId> drive_read_;
  std::vector<std::optional<CapacityId>> egress_;  // [device]
  std::vector<std::optional<CapacityId>> ingress_;
  std::map<std::pair<DeviceId, DeviceId>, Way> links_;
  std::map<std::pair<DeviceId, DeviceId>, Way> through_host_;
  std::map<std::pair<int, CopyDirection>, CapacityId> ports_;  // {server, }
  std::map<std::pair<int, int>, Way> between_servers_;
  std::map<std::pair<int, int>, Way> between_workers_;
  std::map<std::tuple<int, int, MessageChannel>, Route> messages_;
  std::map<std::pair<int, CopyDirection>, Route> host_copies_;
  std::map<std::tuple<int, DeviceId, CopyDirection>, Route> peer_copies_;
  std::map<std::pair<int, CopyDirection>, Route> drive_copies_;
  std::map<std::string, LaneId> named_lanes_;
  std::map<int, LaneId> host_steps_;  // [server]
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_RESOURCES_H_
