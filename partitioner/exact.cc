#include "partitioner/graph_methods.h"
#include "planner/status.h"

namespace siphon {

absl::StatusOr<ChosenCuts> CutExactly(const CutGraph& graph, const GraphPartitionRequest& request) {
  std::optional<ChosenCuts> chosen =
      CutByObjectives(graph, request,
                      {.objectives = {SearchObjective::kSeconds, SearchObjective::kBytes,
                                      SearchObjective::kUnevenness}});
  SIPHON_CHECK(chosen.has_value(), "one stage on one worker is a partition");
  return *std::move(chosen);
}

}  // namespace siphon
