// PartitionGraph against every partition of small graphs, counted from nodes and edges alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/partition_graph.h"
#include "planner/keyed_hash.h"
#include "tests/partitioner/graph_testing.h"

namespace siphon {
namespace {

struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  double bytes = std::numeric_limits<double>::infinity();
  double bytes_with_all_workers = std::numeric_limits<double>::infinity();
};

class BruteForce {
 public:
  BruteForce(const ProfileGraph& graph, const GraphPartitionRequest& request)
      : graph_(graph), request_(request), stage_of_(graph.nodes.size(), 0) {}

  Best Run() {
    Assign(0);
    return best_;
  }

 private:
  void Assign(size_t node) {
    if (node == graph_.nodes.size()) return TryReplicas();
    for (int stage = 0; stage < request_.workers; ++stage) {
      stage_of_[node] = stage;
      Assign(node + 1);
    }
  }

  void TryReplicas() {
    const int stages = *std::max_element(stage_of_.begin(), stage_of_.end()) + 1;
    for (int stage = 0; stage < stages; ++stage) {
      if (std::count(stage_of_.begin(), stage_of_.end(), stage) == 0) return;
    }
    for (const GraphEdge& edge : graph_.edges) {
      if (stage_of_[edge.producer] > stage_of_[edge.consumer]) return;
    }
    std::vector<int> replicas;
    Replicate(stages, request_.workers, replicas);
  }

  void Replicate(int stages, int left, std::vector<int>& replicas) {
    if (static_cast<int>(replicas.size()) == stages) return Score(replicas);
    const int most = request_.replication == Replication::kNone ? std::min(1, left) : left;
    for (int count = 1; count <= most; ++count) {
      replicas.push_back(count);
      Replicate(stages, left - count, replicas);
      replicas.pop_back();
    }
  }

  // Bytes from stages before `stage` to it and later ones.
  double Crossing(int stage) const {
    double bytes = 0;
    for (int node = 0; node < static_cast<int>(graph_.nodes.size()); ++node) {
      const bool crosses =
          stage_of_[node] < stage &&
          std::any_of(graph_.edges.begin(), graph_.edges.end(), [&](const GraphEdge& edge) {
            return edge.producer == node && stage_of_[edge.consumer] >= stage;
          });
      if (crosses) bytes += static_cast<double>(graph_.nodes[node].output.value);
    }
    return bytes;
  }

  void Score(const std::vector<int>& replicas) {
    const int stages = static_cast<int>(replicas.size());
    const auto rate = static_cast<double>(request_.bandwidth.value);
    double slowest = 0;
    double fullest = 0;
    int after = 0;
    for (int stage = stages - 1; stage >= 0; --stage) {
      const double m = replicas[stage];
      double nanos = 0;
      double parameters = 0;
      double state = 0;
      double stash = 0;
      for (size_t node = 0; node < graph_.nodes.size(); ++node) {
        if (stage_of_[node] != stage) continue;
        const GraphNode& layer = graph_.nodes[node];
        nanos += static_cast<double>((layer.forward + layer.backward).value);
        parameters += static_cast<double>(layer.parameters.value);
        state += static_cast<double>(layer.training_state.value);
        stash += static_cast<double>(layer.stash.value);
      }
      slowest = std::max(slowest, nanos / 1e9 / m + 4 * (m - 1) * parameters / (rate * m * m));
      if (stage > 0) {
        slowest = std::max(slowest, 2 * Crossing(stage) / (rate * m));
        if (stage + 1 < stages) slowest = std::max(slowest, 2 * Crossing(stage + 1) / (rate * m));
      }
      const int in_flight = (after + replicas[stage] - 1) / replicas[stage] + 1;
      fullest = std::max(fullest, (parameters + stash) * in_flight + state);
      after += replicas[stage];
    }
    best_.seconds = std::min(best_.seconds, slowest);
    best_.bytes = std::min(best_.bytes, fullest);
    if (after < request_.workers) return;
    best_.bytes_with_all_workers = std::min(best_.bytes_with_all_workers, fullest);
  }

  const ProfileGraph& graph_;
  const GraphPartitionRequest& request_;
  std::vector<int> stage_of_;
  Best best_;
};

void ExpectOptimal(const ProfileGraph& graph, const GraphPartitionRequest& request) {
  const Best best = BruteForce(graph, request).Run();
  const GraphPartition fastest = Cut(graph, request, "exact");
  EXPECT_NEAR(fastest.seconds_per_minibatch, best.seconds, 1e-12);
  const GraphPartition smallest = Cut(graph, request, "memory_balanced");
  double fullest = 0;
  for (const GraphStage& stage : smallest.stages) fullest = std::max(fullest, stage.memory);
  const bool all_work = smallest.workers == request.workers;
  EXPECT_EQ(all_work, best.bytes_with_all_workers < std::numeric_limits<double>::infinity());
  EXPECT_NEAR(fullest, all_work ? best.bytes_with_all_workers : best.bytes, 1e-3);
}

TEST(PartitionGraph, IsTheBestOfAllPartitionsOfSmallChains) {
  KeyedGenerator generator(11);
  for (int round = 0; round < 6; ++round) {
    const ProfileGraph graph = RandomGraph(generator, 6 + round % 3, true);
    for (const int workers : {1, 2, 4}) {
      // Eight layers on four workers are 65,536 assignments; enough for once.
      if (workers == 4 && graph.nodes.size() == 8 && round > 2) continue;
      SCOPED_TRACE(absl::StrCat("round ", round, ", ", workers, " workers"));
      ExpectOptimal(graph, Straight(workers));
      ExpectOptimal(graph, Hybrid(workers));
    }
  }
}

TEST(PartitionGraph, IsTheBestOfAllPartitionsOfSmallGraphs) {
  KeyedGenerator generator(12);
  for (int round = 0; round < 20; ++round) {
    const ProfileGraph graph = RandomGraph(generator, 3 + round % 4, false);
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(absl::StrCat("round ", round, ", ", workers, " workers"));
      ExpectOptimal(graph, Straight(workers));
      ExpectOptimal(graph, Hybrid(workers));
    }
  }
}

}  // namespace
}  // namespace siphon
