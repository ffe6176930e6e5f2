#ifndef SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_TIMES_H_
#define SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_TIMES_H_

#include <optional>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/simulator/simulated_step.h"
#include "planner/units.h"

namespace siphon {

// One direction of a swap: the rate of a copy that runs alone, and its latency.
struct SwapPath {
  BytesPerSecond rate;  // 0: no limit
  Nanos latency;
};

// Out and in again, one after the other.
Nanos RoundTrip(Bytes bytes, const SwapPath& out, const SwapPath& in);

// The device's way to the host, out and in; nothing where there is none.
struct HostPaths {
  SwapPath out;
  SwapPath in;
};
std::optional<HostPaths> HostPathsOf(const PlanningProblem& problem, DeviceId device);
// How long the uplink is busy with a tensor that goes out while another one comes in, as it is in
// the steady state: the slower direction, at the rates that are left when both run.
Nanos UplinkTime(const PlanningProblem& problem, DeviceId device, Bytes bytes);

// A device that another one may park tensors on, over a link of its own.
struct PeerPath {
  DeviceId lender;
  SwapPath out;
  SwapPath in;
};
// Ascending. Those that lend in a SwapFabric: NVLink neighbours; over PCIe only a lender that is
// reached faster than the host while all devices behind the owner's uplink copy at once. MPress has
// no links but NVLink.
std::vector<PeerPath> PeerPathsOf(const PlanningProblem& problem, DeviceId device);

// [stage][group]: the shortest time in `step`, over all microbatches, from the moment when F is
// through the group's last layer until the moment when B or I comes to it (MPress, section III.D,
// footnote 1). Of weight versions likewise, from their last use as the newest until their first use
// behind the UPDATE that replaces them. Of other groups: the whole step. `step` is of the problem's
// schedule, whatever its memory actions.
std::vector<std::vector<Nanos>> LiveIntervals(const PlanningProblem& problem,
                                              const MemoryPlan& plan, const SimulatedStep& step);

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MPRESS_MPRESS_TIMES_H_
