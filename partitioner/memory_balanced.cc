#include "partitioner/graph_methods.h"
#include "planner/status.h"

namespace siphon {

// With all workers, where the graph has nodes for them: fewer stages have less in flight and would
// often win.
absl::StatusOr<ChosenCuts> CutForMemory(const CutGraph& graph,
                                        const GraphPartitionRequest& request) {
  CutObjectives wanted{.use = SearchRequest::Use::kAll,
                       .objectives = {SearchObjective::kBytes, SearchObjective::kSeconds,
                                      SearchObjective::kUnevenness}};
  std::optional<ChosenCuts> chosen = CutByObjectives(graph, request, wanted);
  if (!chosen.has_value()) {
    wanted.use = SearchRequest::Use::kAtMost;
    chosen = CutByObjectives(graph, request, wanted);
  }
  SIPHON_CHECK(chosen.has_value(), "one stage on one worker is a partition");
  return *std::move(chosen);
}

}  // namespace siphon
