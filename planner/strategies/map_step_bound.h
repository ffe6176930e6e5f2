#ifndef SIPHON_PLANNER_STRATEGIES_MAP_STEP_BOUND_H_
#define SIPHON_PLANNER_STRATEGIES_MAP_STEP_BOUND_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/simulator/longest_path.h"
#include "planner/simulator/task_graph.h"
#include "planner/strategies/draft_plan.h"
#include "planner/strategies/planning_problem.h"
#include "planner/strategies/private_ways.h"
#include "planner/units.h"

namespace siphon {

// What a draft's step takes at least on any map on which every worker has lenders for what it gives
// them: its programs, run with ways of their own for each worker (PrivateWays), and with a host
// that steps for all of them at once. Programs and lanes keep their order, so that this is a
// longest path, and nothing that takes less time makes it longer. Then, what workers behind one
// uplink copy over it, and what the host steps, takes its time one after the other, between when it
// can begin and what has to come behind (LeastEnd).
class MapStepBound {
 public:
  // The problem must outlive this. Requires: one replica, and a topology with devices. Errors: as
  // LowerMemoryPlan.
  static absl::StatusOr<MapStepBound> Of(const PlanningProblem& problem, DraftPlan draft);

  // Of maps whose first workers are on `placed`. O(tasks of the step).
  Nanos LeastStep(absl::Span<const DeviceId> placed);

 private:
  // Copies of so many bytes through the same ways, one or two.
  struct CopyKind {
    Bytes bytes;
    std::vector<int> ways;
    std::vector<int> tasks;
    Nanos latency;  // as last tried
  };
  struct Copy {
    int task = 0;
    int kind = 0;
  };

  MapStepBound(const Topology& topology, PrivateWays ways, const TaskGraph& graph);

  void SetDurations(const std::vector<WaySpeed>& speeds);
  Nanos LeastOfHost() const;
  Nanos LeastOfUplink(const std::vector<int>& workers, PrivateWays::Kind direction,
                      const std::vector<WaySpeed>& speeds) const;

  const Topology& topology_;
  PrivateWays ways_;
  LongestPath path_;
  std::vector<Nanos> durations_;  // [task]; of copies as last tried
  std::vector<int> host_steps_;   // tasks
  std::vector<CopyKind> kinds_;
  std::vector<std::vector<Copy>> copies_;  // [way]
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_STRATEGIES_MAP_STEP_BOUND_H_
