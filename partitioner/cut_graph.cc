#include "partitioner/cut_graph.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "planner/status.h"

namespace siphon {
namespace {

using Neighbours = std::vector<std::vector<int>>;

void SortOnce(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

struct Links {
  explicit Links(const ProfileGraph& graph)
      : producers(graph.nodes.size()), consumers(graph.nodes.size()) {
    for (const GraphEdge& edge : graph.edges) {
      producers[edge.consumer].push_back(edge.producer);
      consumers[edge.producer].push_back(edge.consumer);
    }
    for (std::vector<int>& list : producers) SortOnce(list);
    for (std::vector<int>& list : consumers) SortOnce(list);
  }
  Neighbours producers;
  Neighbours consumers;
};

bool IsIdle(const GraphNode& node) {
  return node.forward.value == 0 && node.backward.value == 0 && node.parameters.value == 0 &&
         node.training_state.value == 0 && node.stash.value == 0;
}

// Whether each node is free, where `gone` counts as absent.
bool IsFree(const ProfileGraph& graph, const Links& links, const std::vector<bool>& gone,
            int node) {
  if (graph.nodes[node].role == NodeRole::kInput) return true;
  if (!IsIdle(graph.nodes[node])) return false;
  const auto stays = [&](int other) { return !gone[other]; };
  const auto producers =
      std::count_if(links.producers[node].begin(), links.producers[node].end(), stays);
  const auto consumers =
      std::count_if(links.consumers[node].begin(), links.consumers[node].end(), stays);
  // With two producers on different stages a result would bring the earlier one's bytes over.
  if (consumers == 0) return producers == 1;
  return producers == 0 && graph.nodes[node].output.value == 0;
}

std::vector<int> OrderOf(const Links& links) {
  std::vector<size_t> missing;
  std::vector<int> order;
  for (size_t node = 0; node < links.producers.size(); ++node) {
    missing.push_back(links.producers[node].size());
    if (missing[node] == 0) order.push_back(static_cast<int>(node));
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const int consumer : links.consumers[order[next]]) {
      if (--missing[consumer] == 0) order.push_back(consumer);
    }
  }
  return order;
}

CutNode Joined(const CutNode& producer, const CutNode& consumer) {
  CutNode node = producer;
  node.members.insert(node.members.end(), consumer.members.begin(), consumer.members.end());
  node.compute_ns += consumer.compute_ns;
  node.parameter_bytes += consumer.parameter_bytes;
  node.training_state_bytes += consumer.training_state_bytes;
  node.stash_bytes += consumer.stash_bytes;
  node.output_bytes = consumer.output_bytes;
  node.consumers = consumer.consumers;
  return node;
}

}  // namespace

CutGraph BuildCutGraph(const ProfileGraph& graph) {
  const Links links(graph);
  const int count = static_cast<int>(graph.nodes.size());
  std::vector<bool> gone(graph.nodes.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (int node = 0; node < count; ++node) {
      if (gone[node] || !IsFree(graph, links, gone, node)) continue;
      gone[node] = true;
      changed = true;
    }
  }
  CutGraph cut;
  std::vector<int> index_of(graph.nodes.size(), -1);
  for (int node = 0; node < count; ++node) {
    if (gone[node]) {
      cut.free_nodes.push_back(node);
      continue;
    }
    index_of[node] = static_cast<int>(cut.nodes.size());
    const GraphNode& from = graph.nodes[node];
    cut.nodes.push_back({.members = {node},
                         .compute_ns = from.forward.value + from.backward.value,
                         .parameter_bytes = from.parameters.value,
                         .training_state_bytes = from.training_state.value,
                         .stash_bytes = from.stash.value,
                         .output_bytes = from.output.value});
  }
  for (CutNode& node : cut.nodes) {
    for (const int producer : links.producers[node.members[0]]) {
      if (!gone[producer]) node.producers.push_back(index_of[producer]);
    }
    for (const int consumer : links.consumers[node.members[0]]) {
      if (!gone[consumer]) node.consumers.push_back(index_of[consumer]);
    }
  }
  return cut;
}

CutGraph JoinNeighbours(const CutGraph& graph) {
  struct Join {
    int64_t compute_ns;
    int producer;
    int consumer;
  };
  std::vector<Join> joins;
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    const CutNode& node = graph.nodes[index];
    if (node.consumers.size() != 1) continue;
    const CutNode& next = graph.nodes[node.consumers[0]];
    if (next.producers.size() != 1) continue;
    joins.push_back(
        {node.compute_ns + next.compute_ns, static_cast<int>(index), node.consumers[0]});
  }
  std::stable_sort(joins.begin(), joins.end(),
                   [](const Join& a, const Join& b) { return a.compute_ns < b.compute_ns; });
  std::vector<int> joined_to(graph.nodes.size(), -1);  // producer -> consumer
  std::vector<bool> taken(graph.nodes.size(), false);
  size_t left = std::max<size_t>(1, graph.nodes.size() / 3);
  for (const Join& join : joins) {
    if (left == 0) break;
    if (taken[join.producer] || taken[join.consumer]) continue;
    taken[join.producer] = taken[join.consumer] = true;
    joined_to[join.producer] = join.consumer;
    --left;
  }
  CutGraph result{{}, graph.free_nodes};
  std::vector<int> index_of(graph.nodes.size(), -1);
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    const bool is_second = taken[index] && joined_to[index] < 0;
    if (is_second) continue;
    const int consumer = joined_to[index];
    index_of[index] = static_cast<int>(result.nodes.size());
    if (consumer >= 0) index_of[consumer] = index_of[index];
    result.nodes.push_back(consumer >= 0 ? Joined(graph.nodes[index], graph.nodes[consumer])
                                         : graph.nodes[index]);
  }
  for (CutNode& node : result.nodes) {
    for (int& producer : node.producers) producer = index_of[producer];
    for (int& consumer : node.consumers) consumer = index_of[consumer];
    SortOnce(node.producers);
    SortOnce(node.consumers);
  }
  return result;
}

std::vector<int> TopologicalOrder(const CutGraph& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  std::vector<size_t> missing;
  std::vector<int> ready;  // a stack: the consumers of the last node first
  for (const CutNode& node : graph.nodes) missing.push_back(node.producers.size());
  for (int node = count - 1; node >= 0; --node) {
    if (missing[node] == 0) ready.push_back(node);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    order.push_back(node);
    const std::vector<int>& consumers = graph.nodes[node].consumers;
    for (auto consumer = consumers.rbegin(); consumer != consumers.rend(); ++consumer) {
      if (--missing[*consumer] == 0) ready.push_back(*consumer);
    }
  }
  SIPHON_CHECK(order.size() == graph.nodes.size(), "a checked graph has no cycle");
  return order;
}

std::vector<int> NodeOrder(const ProfileGraph& graph) { return OrderOf(Links(graph)); }

std::vector<int> PlaceFreeNodes(const ProfileGraph& graph, std::vector<int> stage_of) {
  constexpr int kNone = std::numeric_limits<int>::max();
  const Links links(graph);
  const std::vector<int> order = OrderOf(links);
  std::vector<int> first_use(graph.nodes.size(), kNone);  // stage of the first cut node after it
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (const int consumer : links.consumers[*node]) {
      const int stage = stage_of[consumer] >= 0 ? stage_of[consumer] : first_use[consumer];
      first_use[*node] = std::min(first_use[*node], stage);
    }
  }
  for (const int node : order) {
    if (graph.nodes[node].role == NodeRole::kInput) stage_of[node] = 0;
    if (stage_of[node] >= 0) continue;
    stage_of[node] = first_use[node] == kNone ? 0 : first_use[node];
    if (first_use[node] != kNone) continue;
    for (const int producer : links.producers[node]) {
      stage_of[node] = std::max(stage_of[node], stage_of[producer]);
    }
  }
  return stage_of;
}

}  // namespace siphon
