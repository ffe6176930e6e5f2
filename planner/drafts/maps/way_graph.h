#ifndef SIPHON_PLANNER_DRAFTS_WAY_GRAPH_H_
#define SIPHON_PLANNER_DRAFTS_WAY_GRAPH_H_

#include "absl/status/statusor.h"
#include "planner/drafts/draft_plan.h"
#include "planner/drafts/maps/private_ways.h"
#include "planner/drafts/planning_problem.h"
#include "planner/simulator/engine/task_graph.h"

namespace siphon {

// A draft's step before it is said which worker is on which device: what each copy passes are ways
// of the workers. The graph's capacities are those of PrivateWays::Numbered, no copy has a latency,
// and nothing shares cores; without lenders it is over when the draft's step is, once ways have
// paths (ContractGraph). What goes to lenders goes to the worker's own, but for what granules may
// cut from a stripe, which goes for nothing.
struct WayGraph {
  PrivateWays ways;
  TaskGraph graph;
};

// The problem must outlive the graph. Requires: one replica, and a topology with devices. Errors:
// as LowerMemoryPlan.
absl::StatusOr<WayGraph> MakeWayGraph(const PlanningProblem& problem, DraftPlan draft);

}  // namespace siphon

#endif  // SIPHON_PLANNER_DRAFTS_WAY_GRAPH_H_
