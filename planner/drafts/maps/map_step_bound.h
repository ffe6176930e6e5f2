#ifndef SIPHON_PLANNER_DRAFTS_MAP_STEP_BOUND_H_
#define SIPHON_PLANNER_DRAFTS_MAP_STEP_BOUND_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/maps/private_ways.h"
#include "planner/drafts/maps/shared_path.h"
#include "planner/drafts/maps/way_graph.h"
#include "planner/drafts/planning_problem.h"
#include "planner/mapping/parking_demand.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/units.h"

namespace siphon {

// What a draft's step takes at least on any map on which every worker has lenders for what it gives
// them: its programs, run with ways of their own for each worker (PrivateWays), and with a host
// that steps for all of them at once. Programs and lanes keep their order, so that this is a
// longest path, and nothing that takes less time makes it longer. What workers behind one uplink
// have to copy over it up to a copy's end, or from its begin on, takes its time one after the other
// (SharedPath; not of large problems, which have no time for it). Then all that they copy there,
// and what the host steps, likewise, between when it can begin and what has to come behind
// (LeastEnd).
class MapStepBound {
 public:
  // The problem must outlive this. Requires: one replica, and a topology with devices. Errors: as
  // LowerMemoryPlan.
  static absl::StatusOr<MapStepBound> Of(const PlanningProblem& problem, DraftPlan draft);
  // The same of a draft whose graph is known. Requires: it is one of the problem.
  MapStepBound(const PlanningProblem& problem, const WayGraph& step);

  // From here on of maps on which workers have room for what they park, and no more to lend.
  void LendOnly(const ParkingDemand& demand) { ways_.LendOnly(demand); }

  // Of maps whose first workers are on `placed`. O(tasks of the step), and what LeastEnd takes.
  Nanos LeastStep(absl::Span<const DeviceId> placed);

 private:
  // Copies of so many bytes through the same ways, one or two.
  struct CopyKind {
    Bytes bytes;
    std::vector<int> ways;
    std::vector<int> tasks;
    int uplink = kNone;  // that of the ways which leads to or from a host
  };
  // All copies, and those over uplinks lane by lane.
  struct Copies {
    std::vector<CopyKind> kinds;
    std::vector<SharedPath::Chain> chains;
    std::vector<std::vector<int>> chains_of;  // [way]
  };
  static constexpr int kNone = -1;

  // Where it counts that workers share an uplink.
  enum class Sharing { kBesidePath, kInPath };

  static Copies CopiesOf(const TaskGraph& graph, const PrivateWays& ways, int workers);
  void SetDurations(const std::vector<WaySpeed>& speeds);
  std::vector<SharedPath::Machine> UplinksOf(absl::Span<const DeviceId> placed,
                                             const std::vector<WaySpeed>& speeds) const;
  Nanos LeastOfHost() const;
  Nanos LeastOfUplink(const SharedPath::Machine& uplink) const;

  const Topology& topology_;
  PrivateWays ways_;
  Copies copies_;
  Sharing sharing_;
  SharedPath path_;
  std::vector<Nanos> durations_;  // [task]; of copies as last tried
  std::vector<Nanos> works_;      // [task]; of copies over uplinks, alone on them, as last tried
  std::vector<int> host_steps_;   // tasks
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_MAP_STEP_BOUND_H_
