#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/graph_methods.h"

namespace siphon {

// PipeDream, Narayanan et al., SOSP 2019, section 3.1 and its published optimizer: the shortest
// time over the states that the first source reaches, spending every worker, frontier bytes
// charged.
absl::StatusOr<ChosenCuts> CutAsPipeDream(const CutGraph& graph,
                                          const GraphPartitionRequest& request) {
  std::optional<ChosenCuts> chosen = CutByObjectives(graph, request,
                                                     {.choice = CutChoice::kOfFirstSource,
                                                      .charged = Charged::kFrontier,
                                                      .use = SearchRequest::Use::kAll,
                                                      .objectives = {SearchObjective::kSeconds}});
  if (chosen.has_value()) return *std::move(chosen);
  return absl::InvalidArgumentError(
      absl::StrCat("pipedream needs a stage for each of ", request.workers,
                   " workers, but the model cannot be cut into that many; take fewer workers, or "
                   "method exact, which leaves workers idle"));
}

}  // namespace siphon
