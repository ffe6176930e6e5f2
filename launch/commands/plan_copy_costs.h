#ifndef SIPHON_LAUNCH_COMMANDS_PLAN_COPY_COSTS_H_
#define SIPHON_LAUNCH_COMMANDS_PLAN_COPY_COSTS_H_

#include <optional>
#include <vector>

#include "planner/drafts/planning_problem.h"
#include "planner/ids.h"
#include "planner/memory_plan.h"
#include "planner/topology.h"
#include "planner/units.h"

namespace siphon {

// What copies of one group take, out of a device and back again, alone on their links.
class CopyCosts {
 public:
  // The problem must outlive this.
  CopyCosts(const PlanningProblem& problem, DeviceId device);

  // None: the device has no way there.
  std::optional<Nanos> Host(Bytes bytes) const;
  // Through the host to the device's drive.
  std::optional<Nanos> Nvme(Bytes bytes) const;
  // Over all its links at once, in proportion to their rates.
  std::optional<Nanos> Peers(Bytes bytes) const;
  // All of them at once.
  Nanos Stripes(const std::vector<Stripe>& stripes) const;

 private:
  // One direction of the way to the host.
  struct Way {
    BytesPerSecond rate;  // 0: no limit
    Nanos latency;
  };
  struct HostWays {
    Way out;
    Way back;
  };

  std::optional<HostWays> ToHost() const;
  TopologyLink LinkBetween(DeviceId from, DeviceId to) const;

  const PlanningProblem& problem_;
  const Topology& topology_;
  const DeviceId device_;
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PLAN_COPY_COSTS_H_
