#ifndef SIPHON_PLANNER_DRAFTS_MAP_STEPS_H_
#define SIPHON_PLANNER_DRAFTS_MAP_STEPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/maps/private_ways.h"
#include "planner/drafts/maps/way_graph.h"
#include "planner/drafts/planning_problem.h"
#include "planner/simulator/engine/graph_clock.h"
#include "planner/simulator/engine/task_graph.h"
#include "planner/topology.h"

namespace siphon {

// The simulated step of a draft without lenders on one map after another: only which capacities its
// copies pass is said anew for each.
//
// Invariant: what it answers is what DraftSimulator::Run would.
class MapSteps {
 public:
  // None where a map changes more than that: with lenders, cores that are shared, or several
  // servers; or where two devices have no way to each other. `step` is the draft's.
  static std::optional<MapSteps> Of(const PlanningProblem& problem, const DraftPlan& draft,
                                    const WayGraph& step);

  // None: it is longer than `most`.
  std::optional<Nanos> StepWithin(absl::Span<const DeviceId> map, Nanos most);

  // Of maps for which this is the same, the step is, too: what the ways of workers pass, in numbers
  // of their own.
  std::vector<int64_t> KeyOf(absl::Span<const DeviceId> map) const;

 private:
  struct Route {
    PathId path{-1};
    Nanos latency;
  };
  // Of some copies: from one worker to another, or, by `kind`, between one and its host or drive.
  struct Way {
    WorkerId from;
    WorkerId to;
    PrivateWays::Kind kind = PrivateWays::kToHost;
    std::vector<TaskId> copies;
  };

  explicit MapSteps(const TaskGraph& graph) : graph_(graph), clock_(graph) {}

  bool AddWays(const WayGraph& step);
  bool AddRoutes(const Topology& topology);
  void FindTails();
  const Route& RouteOf(const Way& way, absl::Span<const DeviceId> map) const;

  TaskGraph graph_;
  std::vector<Way> ways_;
  std::vector<std::vector<Route>> device_routes_;   // [device][Kind]
  std::vector<std::vector<Route>> message_routes_;  // [from device][to device]
  std::vector<Nanos> tails_;  // [task], from its begin to the end of all, on any map at least
  GraphClock clock_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_MAP_STEPS_H_
