#include "partitioner/partition_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/graph_methods.h"
#include "partitioner/partition_model.h"
#include "planner/status.h"

namespace siphon {
namespace {

using GraphMethod = absl::StatusOr<ChosenCuts> (*)(const CutGraph& graph,
                                                   const GraphPartitionRequest& request);

struct MethodRow {
  absl::string_view name;
  GraphMethod method;
  absl::string_view help;
};

constexpr MethodRow kMethods[] = {
#define SIPHON_GRAPH_METHOD(name, method, help) {name, method, help},
#include "partitioner/graph_methods.def"
#undef SIPHON_GRAPH_METHOD
};

absl::StatusOr<ChosenCuts> RunMethod(const CutGraph& graph, const GraphPartitionRequest& request,
                                     absl::string_view method) {
  for (const MethodRow& row : kMethods) {
    if (row.name == method) return row.method(graph, request);
  }
  std::vector<std::string> names;
  for (const GraphMethodInfo& info : KnownGraphMethods()) names.push_back(info.name);
  if (std::find(names.begin(), names.end(), method) == names.end()) {
    return absl::NotFoundError(absl::StrCat("unknown partition method '", method,
                                            "'; known: ", absl::StrJoin(names, ", ")));
  }
  return CutInOrder(graph, request, method);
}

absl::Status CheckRequest(const GraphPartitionRequest& request) {
  if (request.workers < 1 || request.workers > kMostPartitionWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.workers, " workers; there must be 1 to ", kMostPartitionWorkers));
  }
  if (request.bandwidth.value < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a bandwidth of ", request.bandwidth.value, " B/s; must be more than 0"));
  }
  const double ratio = request.compression_ratio.value_or(1);
  if (!std::isfinite(ratio) || ratio <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("an activation compression ratio of ", ratio,
                                                   "; must be more than 0 (1: not compressed)"));
  }
  return absl::OkStatus();
}

GraphStage Describe(const ChosenCuts& chosen, const StageChoice& choice, int workers_after) {
  const CutState& from = chosen.cuts.states[choice.begin];
  const CutState& to = chosen.cuts.states[choice.end];
  GraphStage stage;
  stage.replicas = choice.replicas;
  stage.compute = Nanos(to.compute_ns - from.compute_ns);
  stage.parameters = Bytes(to.parameter_bytes - from.parameter_bytes);
  stage.boundary = Bytes(to.crossing_bytes);
  stage.memory = StageBytes(chosen.cuts, chosen.model, choice, workers_after);
  stage.seconds = StageSeconds(chosen.cuts, chosen.model, choice);
  StageCostModel free = chosen.model;
  free.compression_ratio.reset();
  if (StageSeconds(chosen.cuts, free, choice) < stage.seconds) stage.limit = StageLimit::kTransfer;
  return stage;
}

void AssignNodes(const ProfileGraph& graph, const ChosenCuts& chosen, GraphPartition& partition) {
  std::vector<int> stage_of(graph.nodes.size(), -1);
  for (size_t node = 0; node < chosen.cuts.graph.nodes.size(); ++node) {
    size_t stage = 0;
    while (!chosen.cuts.states[chosen.stages[stage].end].before.Contains(node)) ++stage;
    for (const int member : chosen.cuts.graph.nodes[node].members) {
      stage_of[member] = static_cast<int>(stage);
    }
  }
  stage_of = PlaceFreeNodes(graph, std::move(stage_of));
  for (const int node : NodeOrder(graph)) partition.stages[stage_of[node]].nodes.push_back(node);
}

}  // namespace

StageCostModel CostModelOf(const GraphPartitionRequest& request) {
  return {.bandwidth = request.bandwidth,
          .compression_ratio = request.compression_ratio,
          .weight_versions = request.weight_versions};
}

int MostReplicas(const GraphPartitionRequest& request) {
  return request.replication == Replication::kNone ? 1 : request.workers;
}

std::vector<GraphMethodInfo> KnownGraphMethods() {
  std::vector<GraphMethodInfo> infos;
  for (const MethodRow& row : kMethods) {
    infos.push_back({std::string(row.name), std::string(row.help)});
  }
  for (const std::string& name : KnownPartitionMethods()) {
    const bool is_known = std::any_of(
        infos.begin(), infos.end(), [&](const GraphMethodInfo& info) { return info.name == name; });
    if (!is_known)
      infos.push_back({name, "as for a job, along one order of the nodes, no replicas"});
  }
  return infos;
}

absl::StatusOr<GraphPartition> PartitionGraph(const ProfileGraph& graph,
                                              const GraphPartitionRequest& request,
                                              absl::string_view method) {
  SIPHON_RETURN_IF_ERROR(CheckRequest(request));
  SIPHON_RETURN_IF_ERROR(CheckGraph(graph));
  SIPHON_ASSIGN_OR_RETURN(const ChosenCuts chosen,
                          RunMethod(BuildCutGraph(graph), request, method));
  GraphPartition partition;
  partition.cuts = chosen.cuts.states.size() - 2;  // before the first node and after the last: none
  partition.left_out = chosen.cuts.left_out;
  for (const StageChoice& choice : chosen.stages) partition.workers += choice.replicas;
  int after = partition.workers;
  for (const StageChoice& choice : chosen.stages) {
    after -= choice.replicas;
    partition.stages.push_back(Describe(chosen, choice, after));
    partition.seconds_per_minibatch =
        std::max(partition.seconds_per_minibatch, partition.stages.back().seconds);
  }
  AssignNodes(graph, chosen, partition);
  const size_t last = chosen.cuts.states.size() - 1;
  partition.one_worker_seconds = StageSeconds(chosen.cuts, chosen.model, {0, last, 1});
  partition.data_parallel_seconds =
      StageSeconds(chosen.cuts, chosen.model, {0, last, request.workers});
  return partition;
}

}  // namespace siphon
