#ifndef SIPHON_PARTITIONER_GRAPH_METHODS_H_
#define SIPHON_PARTITIONER_GRAPH_METHODS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/partition_graph.h"
#include "partitioner/stage_search.h"

namespace siphon {

// What a method hands back: stages of `cuts`, and how their time is counted.
struct ChosenCuts {
  CutStates cuts;
  StageCostModel model;
  std::vector<StageChoice> stages;
};

// One function for each row of the table. PartitionGraph has checked graph and request.
#define SIPHON_GRAPH_METHOD(name, method, help) \
  absl::StatusOr<ChosenCuts> method(const CutGraph& graph, const GraphPartitionRequest& request);
#include "partitioner/graph_methods.def"
#undef SIPHON_GRAPH_METHOD

// Any method of partition_methods.def, with a node's compute time in place of operations: along one
// order, without replicas.
absl::StatusOr<ChosenCuts> CutInOrder(const CutGraph& graph, const GraphPartitionRequest& request,
                                      absl::string_view method);

struct CutObjectives {
  CutChoice choice = CutChoice::kEvery;
  Charged charged = Charged::kCrossing;
  SearchRequest::Use use = SearchRequest::Use::kAtMost;
  std::vector<SearchObjective> objectives;  // at least one
};

// The best of all cuts for the first objective, of these for the second, and so on. Nothing where
// all workers are to be used and the graph has too few nodes. As many cuts are compared as take
// about a second: for time, a coarse search first bounds the one that counts.
std::optional<ChosenCuts> CutByObjectives(const CutGraph& graph,
                                          const GraphPartitionRequest& request,
                                          const CutObjectives& wanted);

StageCostModel CostModelOf(const GraphPartitionRequest& request);
// How many replicas a stage may have.
int MostReplicas(const GraphPartitionRequest& request);

}  // namespace siphon

#endif  // SIPHON_PARTITIONER_GRAPH_METHODS_H_
