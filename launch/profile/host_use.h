#ifndef SIPHON_LAUNCH_PROFILE_HOST_USE_H_
#define SIPHON_LAUNCH_PROFILE_HOST_USE_H_

#include <string>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/second_choices/take_second_choices.h"
#include "planner/topology.h"
#include "planner/units.h"
#include "swap/parking_layout.h"

namespace siphon {

// What the workers of a machine take of its memory by their plan, all of them together: from before
// the first step until the end, to the byte what their books count
// (launch/run/parking/host_memory).
struct HostUse {
  Bytes parked;         // tensors
  Bytes steps;          // optimizer steps there: state, and copies of parameters and gradients
  Bytes drive_buffers;  // what goes to a drive passes through
  Bytes total() const { return parked + steps + drive_buffers; }
  friend bool operator==(const HostUse&, const HostUse&) = default;
};

// `host_steps`: [worker], HostStepBytes; empty: there are none. Pure.
HostUse HostUseOf(const std::vector<WorkerParking>& parking, const std::vector<Bytes>& host_steps);

// [server]: that of the workers which are in it. Pure.
std::vector<HostUse> HostUseOfServers(const std::vector<WorkerParking>& parking,
                                      const std::vector<Bytes>& host_steps,
                                      const Topology& topology, const DeviceMapping& mapping);
// Of the server whose workers take most.
HostUse FullestHost(const std::vector<HostUse>& servers);

// [worker]: all that it has with the host where optimizer steps there have a drive as their second
// choice (StaysForHostStep), in bytes of that drive; 0: they have not. `host_steps`: as above.
// Pure.
std::vector<Bytes> HostRoomsForDrives(const FollowedPlan& plan,
                                      const std::vector<WorkerParking>& parking,
                                      const std::vector<Bytes>& host_steps);

// "12.0 MiB (parked 10.0 MiB, for optimizer steps 1.50 MiB, buffers of drives 512 KiB)"
std::string ToString(const HostUse& use);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_HOST_USE_H_
