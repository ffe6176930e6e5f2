#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/graph_methods.h"

namespace siphon {

// PipeDream, Narayanan et al., SOSP 2019, section 3.1 and its published optimizer: the shortest
// time over the states that the first source reaches, spending every worker, frontier bytes
// charged.
absl::StatusOr<ChosenCuts> CutAsPipeDream(const CutGraph& graph,
                                          const GraphPartitionRequest& request) {
  ChosenCuts chosen;
  chosen.cuts = ListCuts(graph, CutChoice::kOfFirstSource, MostStates(request));
  chosen.model = CostModelOf(request);
  chosen.model.charged = Charged::kFrontier;
  const SearchRequest search{.workers = request.workers,
                             .use = SearchRequest::Use::kAll,
                             .most_replicas = MostReplicas(request)};
  std::optional<SearchResult> found = SearchStages(chosen.cuts, chosen.model, search);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipedream needs a stage for each of ", request.workers,
                     " workers, but the model cannot be cut into that many; take fewer workers, "
                     "or method exact, which leaves workers idle"));
  }
  chosen.stages = std::move(found->stages);
  return chosen;
}

}  // namespace siphon
