#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "partitioner/graph_methods.h"
#include "planner/status.h"

namespace siphon {
namespace {

// A search of so many steps takes about a second.
constexpr double kMostSteps = 3e8;
constexpr size_t kMostStates = 4096;  // pairs alone, whatever the workers
constexpr size_t kFewestStates = 32;
constexpr size_t kCoarseStates = 128;

// How many states a search can take that tries, for a pair of states, `workers` counts of workers
// after a stage and as many counts of replicas.
size_t MostStates(double workers, int most_replicas) {
  const double a_pair = workers * std::min<double>(workers, most_replicas);
  return std::clamp(static_cast<size_t>(std::sqrt(2 * kMostSteps / a_pair)), kFewestStates,
                    kMostStates);
}

// Searches for each objective in turn, none at the expense of an earlier one.
std::optional<std::vector<StageChoice>> SearchInTurn(
    const ChosenCuts& chosen, SearchRequest search,
    const std::vector<SearchObjective>& objectives) {
  std::vector<StageChoice> stages;
  for (const SearchObjective objective : objectives) {
    search.objective = objective;
    std::optional<SearchResult> found = SearchStages(chosen.cuts, chosen.model, search);
    if (!found.has_value()) {
      SIPHON_CHECK(stages.empty(), "the last result keeps the limits that it set");
      return std::nullopt;
    }
    if (objective == SearchObjective::kSeconds) search.most_seconds = found->value;
    if (objective == SearchObjective::kBytes) search.most_bytes = found->value;
    stages = std::move(found->stages);
  }
  return stages;
}

double SlowestStage(const ChosenCuts& chosen) {
  double slowest = 0;
  for (const StageChoice& stage : chosen.stages) {
    slowest = std::max(slowest, StageSeconds(chosen.cuts, chosen.model, stage));
  }
  return slowest;
}

}  // namespace

std::optional<ChosenCuts> CutByObjectives(const CutGraph& graph,
                                          const GraphPartitionRequest& request,
                                          const CutObjectives& wanted) {
  SearchRequest search{
      .workers = request.workers, .use = wanted.use, .most_replicas = MostReplicas(request)};
  ChosenCuts coarse{.model = CostModelOf(request)};
  coarse.model.charged = wanted.charged;
  const size_t most = MostStates(request.workers, search.most_replicas);
  const bool by_time = wanted.objectives.front() == SearchObjective::kSeconds;
  coarse.cuts = ListCuts(graph, wanted.choice, by_time ? std::min(most, kCoarseStates) : most);
  const size_t last = coarse.cuts.states.size() - 1;
  const StageChoice whole{0, last, request.workers};
  if (by_time && search.most_replicas > 1) {
    search.most_seconds = StageSeconds(coarse.cuts, coarse.model, whole);
  }
  std::optional<std::vector<StageChoice>> stages = SearchInTurn(coarse, search, wanted.objectives);
  if (stages.has_value()) coarse.stages = *std::move(stages);
  if (!by_time || coarse.cuts.left_out.empty()) {
    return coarse.stages.empty() ? std::nullopt : std::optional(std::move(coarse));
  }
  // A time that can be had leaves few counts of workers open at each cut, so that many more cuts
  // can be compared.
  if (!coarse.stages.empty()) search.most_seconds = SlowestStage(coarse);
  const double ideal = StageSeconds(coarse.cuts, coarse.model, {0, last, 1}) / request.workers;
  const double open = request.workers * (1 - std::min(1.0, ideal / search.most_seconds)) + 2;
  ChosenCuts fine{.model = coarse.model};
  fine.cuts = ListCuts(graph, wanted.choice,
                       MostStates(std::min<double>(open, request.workers), search.most_replicas));
  stages = SearchInTurn(fine, search, wanted.objectives);
  if (stages.has_value()) {
    fine.stages = *std::move(stages);
    return fine;
  }
  return coarse.stages.empty() ? std::nullopt : std::optional(std::move(coarse));
}

}  // namespace siphon
