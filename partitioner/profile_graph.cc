#include "partitioner/profile_graph.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int64_t kLargestSum = int64_t{1} << 52;

absl::Status CheckSums(const ProfileGraph& graph) {
  int64_t nanos = 0;
  int64_t bytes = 0;
  for (const GraphNode& node : graph.nodes) {
    const std::pair<absl::string_view, int64_t> figures[] = {
        {"forward time", node.forward.value},          {"backward time", node.backward.value},
        {"output bytes", node.output.value},           {"parameter bytes", node.parameters.value},
        {"training state", node.training_state.value}, {"stash", node.stash.value}};
    size_t index = 0;
    for (const auto& [what, value] : figures) {
      int64_t& sum = index++ < 2 ? nanos : bytes;
      if (value < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(node.name, ": ", what, " is ", value, "; must not be negative"));
      }
      if (value > kLargestSum - sum) {
        return absl::InvalidArgumentError(
            absl::StrCat(node.name, ": ", what, " of ", value, " brings the model's sum above ",
                         kLargestSum, index <= 2 ? " ns (52 days)" : " bytes (4 PiB)"));
      }
      sum += value;
    }
  }
  return absl::OkStatus();
}

// Takes nodes without producers away until none is left; what stays has a producer that stays.
absl::Status CheckAcyclic(const ProfileGraph& graph) {
  std::vector<int> missing(graph.nodes.size(), 0);
  std::vector<std::vector<int>> consumers(graph.nodes.size());
  std::vector<std::vector<int>> producers(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) {
    ++missing[edge.consumer];
    consumers[edge.producer].push_back(edge.consumer);
    producers[edge.consumer].push_back(edge.producer);
  }
  std::vector<int> ready;
  for (size_t node = 0; node < missing.size(); ++node) {
    if (missing[node] == 0) ready.push_back(static_cast<int>(node));
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    for (const int consumer : consumers[ready[next]]) {
      if (--missing[consumer] == 0) ready.push_back(consumer);
    }
  }
  if (ready.size() == graph.nodes.size()) return absl::OkStatus();
  int node = 0;
  while (missing[node] == 0) ++node;
  std::vector<int> seen_at(graph.nodes.size(), -1);
  std::vector<int> path;  // backwards, until it meets itself
  while (seen_at[node] < 0) {
    seen_at[node] = static_cast<int>(path.size());
    path.push_back(node);
    for (const int producer : producers[node]) {
      if (missing[producer] == 0) continue;
      node = producer;
      break;
    }
  }
  std::vector<absl::string_view> names = {graph.nodes[node].name};
  for (size_t back = path.size(); back-- > static_cast<size_t>(seen_at[node]);) {
    names.push_back(graph.nodes[path[back]].name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the graph has a cycle: ", absl::StrJoin(names, " -> ")));
}

// CheckGraph refuses what does not fit.
int64_t Clamped(absl::int128 sum) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<int64_t>::min();
  return sum > kMost ? kMost : sum < kLeast ? kLeast : static_cast<int64_t>(sum);
}

}  // namespace

ProfileGraph ChainOf(const ModelProfile& profile) {
  ProfileGraph graph;
  for (const LayerProfile& layer : profile.layers) {
    GraphNode node;
    node.name = layer.name;
    node.forward = layer.forward;
    node.backward =
        Nanos(Clamped(absl::int128(layer.input_backward.value) + layer.weight_backward.value));
    node.output = layer.boundary;
    node.parameters = layer.parameters;
    node.training_state =
        Bytes(Clamped(absl::int128(layer.gradients.value) + layer.optimizer_state.value));
    absl::int128 stash = 0;
    for (const SavedTensor& tensor : layer.saved) stash += tensor.bytes.value;
    node.stash = Bytes(Clamped(stash));
    const int index = static_cast<int>(graph.nodes.size());
    if (index > 0) graph.edges.push_back({index - 1, index});
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

absl::Status CheckGraph(const ProfileGraph& graph) {
  int layers = 0;
  for (const GraphNode& node : graph.nodes) layers += node.role == NodeRole::kLayer ? 1 : 0;
  if (layers == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", graph.nodes.size(),
                                                   " nodes, none of which is a layer to place"));
  }
  const auto nodes = static_cast<int>(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) {
    for (const int end : {edge.producer, edge.consumer}) {
      if (0 <= end && end < nodes) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("an edge names node ", end, "; nodes are 0 to ", nodes - 1));
    }
  }
  SIPHON_RETURN_IF_ERROR(CheckSums(graph));
  return CheckAcyclic(graph);
}

}  // namespace siphon
