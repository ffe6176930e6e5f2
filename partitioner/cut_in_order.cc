#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/graph_methods.h"
#include "partitioner/partition_model.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<ChosenCuts> CutInOrder(const CutGraph& graph, const GraphPartitionRequest& request,
                                      absl::string_view method) {
  ModelSpec model;
  for (const int node : TopologicalOrder(graph)) {
    LayerSpec layer;
    layer.forward_flops = graph.nodes[node].compute_ns;
    model.layers.push_back(std::move(layer));
  }
  SIPHON_ASSIGN_OR_RETURN(const StagePartition partition,
                          PartitionModel(model, request.workers, method));
  ChosenCuts chosen;
  chosen.cuts = ListCuts(graph, CutChoice::kAlongOneOrder, std::numeric_limits<size_t>::max());
  chosen.model = CostModelOf(request);
  // State n of an order that is cut everywhere holds its first n nodes.
  for (const StageRange& range : partition.stages) {
    chosen.stages.push_back({static_cast<size_t>(range.begin), static_cast<size_t>(range.end), 1});
  }
  return chosen;
}

}  // namespace siphon
