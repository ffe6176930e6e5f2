#ifndef SIPHON_TESTS_PARTITIONER_GRAPH_TESTING_H_
#define SIPHON_TESTS_PARTITIONER_GRAPH_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "partitioner/partition_graph.h"
#include "planner/keyed_hash.h"

namespace siphon {

inline constexpr int64_t kMilli = 1'000'000;  // ns
inline constexpr int64_t kMega = 1'000'000;   // bytes

// A node of ms milliseconds, a third of them forward.
inline GraphNode Node(std::string name, int64_t ms, int64_t output_mb = 0,
                      int64_t parameters_mb = 0) {
  GraphNode node;
  node.name = std::move(name);
  node.forward = Nanos(ms * kMilli / 3);
  node.backward = Nanos(ms * kMilli) - node.forward;
  node.output = Bytes(output_mb * kMega);
  node.parameters = Bytes(parameters_mb * kMega);
  node.training_state = node.parameters * 2;
  node.stash = node.output;
  return node;
}

inline ProfileGraph Chain(std::vector<GraphNode> nodes) {
  ProfileGraph graph;
  graph.nodes = std::move(nodes);
  for (int node = 1; node < static_cast<int>(graph.nodes.size()); ++node) {
    graph.edges.push_back({node - 1, node});
  }
  return graph;
}

inline GraphPartitionRequest Straight(int workers) {
  return {.workers = workers, .replication = Replication::kNone, .compression_ratio = 1.0};
}

inline GraphPartitionRequest Hybrid(int workers) {
  return {.workers = workers, .compression_ratio = 1.0};
}

inline GraphPartition Cut(const ProfileGraph& graph, const GraphPartitionRequest& request,
                          absl::string_view method) {
  absl::StatusOr<GraphPartition> partition = PartitionGraph(graph, request, method);
  EXPECT_TRUE(partition.ok()) << partition.status();
  return partition.ok() ? *std::move(partition) : GraphPartition{};
}

// "a b x2 | c".
inline std::string TextOf(const ProfileGraph& graph, const GraphPartition& partition) {
  std::vector<std::string> stages;
  for (const GraphStage& stage : partition.stages) {
    std::vector<std::string> words;
    for (const int node : stage.nodes) words.push_back(graph.nodes[node].name);
    if (stage.replicas > 1) words.push_back(absl::StrCat("x", stage.replicas));
    stages.push_back(absl::StrJoin(words, " "));
  }
  return absl::StrJoin(stages, " | ");
}

// Of nodes with random costs: each needs the one before, or any of the earlier ones.
inline ProfileGraph RandomGraph(KeyedGenerator& generator, int nodes, bool chain) {
  ProfileGraph graph;
  for (int node = 0; node < nodes; ++node) {
    graph.nodes.push_back(Node(absl::StrCat("n", node), static_cast<int64_t>(generator.Below(50)),
                               static_cast<int64_t>(generator.Below(30)),
                               static_cast<int64_t>(generator.Below(8))));
    if (node > 0 && chain) graph.edges.push_back({node - 1, node});
    for (int earlier = 0; earlier < node && !chain; ++earlier) {
      if (generator.Below(3) == 0) graph.edges.push_back({earlier, node});
    }
  }
  return graph;
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PARTITIONER_GRAPH_TESTING_H_
