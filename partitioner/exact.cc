#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/graph_methods.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Searches for each objective in turn, none at the expense of an earlier one.
SearchResult SearchInTurn(const CutStates& cuts, const StageCostModel& model, SearchRequest request,
                          const std::vector<SearchObjective>& objectives) {
  SearchResult best;
  for (const SearchObjective objective : objectives) {
    request.objective = objective;
    std::optional<SearchResult> found = SearchStages(cuts, model, request);
    SIPHON_CHECK(found.has_value(), "one stage, or the last result, keeps the limits");
    best = *std::move(found);
    if (objective == SearchObjective::kSeconds) request.most_seconds = best.value;
    if (objective == SearchObjective::kBytes) request.most_bytes = best.value;
  }
  return best;
}

ChosenCuts CutBy(const CutGraph& graph, const GraphPartitionRequest& request,
                 const std::vector<SearchObjective>& objectives) {
  ChosenCuts chosen;
  chosen.cuts = ListCuts(graph, CutChoice::kEvery, MostStates(request));
  chosen.model = CostModelOf(request);
  const SearchRequest search{.workers = request.workers, .most_replicas = MostReplicas(request)};
  chosen.stages = SearchInTurn(chosen.cuts, chosen.model, search, objectives).stages;
  return chosen;
}

}  // namespace

absl::StatusOr<ChosenCuts> CutExactly(const CutGraph& graph, const GraphPartitionRequest& request) {
  return CutBy(graph, request,
               {SearchObjective::kSeconds, SearchObjective::kBytes, SearchObjective::kUnevenness});
}

absl::StatusOr<ChosenCuts> CutForMemory(const CutGraph& graph,
                                        const GraphPartitionRequest& request) {
  return CutBy(graph, request,
               {SearchObjective::kBytes, SearchObjective::kSeconds, SearchObjective::kUnevenness});
}

}  // namespace siphon
