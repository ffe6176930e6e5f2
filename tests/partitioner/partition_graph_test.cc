#include "partitioner/partition_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/keyed_hash.h"
#include "tests/partitioner/graph_testing.h"

namespace siphon {
namespace {

TEST(PartitionGraph, CutsAChainWhereTheSlowestStageIsFastest) {
  const ProfileGraph graph = Chain({Node("a", 10), Node("b", 20), Node("c", 30), Node("d", 40)});
  const GraphPartition two = Cut(graph, Straight(2), "exact");
  EXPECT_EQ(TextOf(graph, two), "a b c | d");  // 60 | 40 beats 30 | 70
  EXPECT_DOUBLE_EQ(two.seconds_per_minibatch, 0.060);
  EXPECT_DOUBLE_EQ(two.one_worker_seconds, 0.100);
  EXPECT_DOUBLE_EQ(two.data_parallel_seconds, 0.050);  // no parameters: nothing to sum
  EXPECT_EQ(two.cuts, 3U);
  const GraphPartition three = Cut(graph, Straight(3), "exact");
  EXPECT_EQ(TextOf(graph, three), "a b | c | d");  // 30 | 30 | 40
  EXPECT_DOUBLE_EQ(three.seconds_per_minibatch, 0.040);
}

TEST(PartitionGraph, ReplicatesWhatComputesAndNotWhatHoldsParameters) {
  // One stage on 3 workers: (100 + 4 * 2 / 3 * 100) / 3 = 122 ms. Without d, 2 workers: 60 / 2.
  const ProfileGraph graph =
      Chain({Node("a", 10), Node("b", 20), Node("c", 30), Node("d", 40, 0, 100)});
  const GraphPartition partition = Cut(graph, Hybrid(3), "exact");
  EXPECT_EQ(TextOf(graph, partition), "a b c x2 | d");
  EXPECT_DOUBLE_EQ(partition.seconds_per_minibatch, 0.040);
  EXPECT_DOUBLE_EQ(partition.stages[0].seconds, 0.030);
  EXPECT_NEAR(partition.data_parallel_seconds, 0.1 / 3 + 8.0 / 9 * 0.1, 1e-12);
  EXPECT_EQ(partition.workers, 3);
}

TEST(PartitionGraph, ChargesATransferBothWays) {
  // The even cut a b | c d moves 40 MB at 1 GB/s: 80 ms. The other cuts move nothing.
  const ProfileGraph graph =
      Chain({Node("a", 25), Node("b", 25, 40), Node("c", 25), Node("d", 25)});
  const GraphPartition charged = Cut(graph, Straight(2), "exact");
  EXPECT_DOUBLE_EQ(charged.seconds_per_minibatch, 0.075);
  GraphPartitionRequest free = Straight(2);
  free.compression_ratio.reset();
  EXPECT_EQ(TextOf(graph, Cut(graph, free, "exact")), "a b | c d");
  GraphPartitionRequest compressed = Straight(2);
  compressed.compression_ratio = 2;  // 40 ms, less than the compute
  const GraphPartition half = Cut(graph, compressed, "exact");
  EXPECT_DOUBLE_EQ(half.seconds_per_minibatch, 0.050);
  EXPECT_EQ(half.stages[0].boundary, Bytes(40 * kMega));
  EXPECT_EQ(half.stages[1].limit, StageLimit::kCompute);
  GraphPartitionRequest slow = compressed;
  slow.bandwidth = BytesPerSecond(600'000'000);  // 66.7 ms, still less than 75
  const GraphPartition limited = Cut(graph, slow, "exact");
  EXPECT_EQ(limited.stages[1].limit, StageLimit::kTransfer);
  EXPECT_NEAR(limited.seconds_per_minibatch, 2 * 40e6 / (2 * 600e6), 1e-12);
}

TEST(PartitionGraph, CountsOnlyTheBytesThatCrossWhereBranchesMeet) {
  // s feeds x and y, which meet in t. After x and y only their outputs cross, 2 * 5 MB; PipeDream's
  // optimizer counts s again, for x does not need y: 30 MB at 1 GB/s, both ways.
  const ProfileGraph graph{{Node("s", 10, 20), Node("x", 10, 5), Node("y", 10, 5), Node("t", 30)},
                           {{0, 1}, {0, 2}, {1, 3}, {2, 3}}};
  const GraphPartition exact = Cut(graph, Straight(2), "exact");
  EXPECT_EQ(TextOf(graph, exact), "s x y | t");
  EXPECT_EQ(exact.stages[0].boundary, Bytes(10 * kMega));
  EXPECT_DOUBLE_EQ(exact.seconds_per_minibatch, 0.030);
  const GraphPartition pipedream = Cut(graph, Straight(2), "pipedream");
  EXPECT_DOUBLE_EQ(pipedream.seconds_per_minibatch,
                   0.050);  // s | x y t: 40 ms of bytes, 50 of work
}

TEST(PartitionGraph, SplitsBranchesInWhateverOrderIsFastest) {
  // Two branches of 30 + 10 and 10 + 30: the best half is a and d's first parts, whichever order.
  const ProfileGraph graph{
      {Node("s", 0), Node("a", 30), Node("b", 10), Node("c", 10), Node("d", 30), Node("t", 0)},
      {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 5}, {4, 5}}};
  EXPECT_DOUBLE_EQ(Cut(graph, Straight(2), "exact").seconds_per_minibatch, 0.040);
  EXPECT_DOUBLE_EQ(Cut(graph, Straight(3), "exact").seconds_per_minibatch, 0.030);
}

TEST(PartitionGraph, LeavesWorkersIdleThatDoNotHelp) {
  const ProfileGraph graph = Chain({Node("a", 10), Node("b", 80), Node("c", 10)});
  const GraphPartition exact = Cut(graph, Straight(8), "exact");
  EXPECT_DOUBLE_EQ(exact.seconds_per_minibatch, 0.080);
  EXPECT_LE(exact.workers, 3);
  EXPECT_EQ(PartitionGraph(graph, Straight(8), "pipedream").status(),
            absl::InvalidArgumentError(
                "pipedream needs a stage for each of 8 workers, but the model cannot be cut into "
                "that many; take fewer workers, or method exact, which leaves workers idle"));
}

TEST(PartitionGraph, BalancesMemoryAgainstWhatIsInFlight) {
  // Equal layers of 10 MB to stash. The first of two stages has two minibatches in flight, so 2 and
  // 4 layers hold 40 MB each, where 3 and 3 would hold 60 and 30.
  const ProfileGraph graph = Chain({Node("a", 10, 10), Node("b", 10, 10), Node("c", 10, 10),
                                    Node("d", 10, 10), Node("e", 10, 10), Node("f", 10, 10)});
  const GraphPartition memory = Cut(graph, Straight(2), "memory_balanced");
  EXPECT_EQ(TextOf(graph, memory), "a b | c d e f");
  EXPECT_DOUBLE_EQ(memory.stages[0].memory, 40e6);
  EXPECT_DOUBLE_EQ(memory.stages[1].memory, 40e6);
  EXPECT_EQ(TextOf(graph, Cut(graph, Straight(2), "exact")), "a b c | d e f");
  GraphPartitionRequest stashed = Straight(2);
  const ProfileGraph weights = Chain({Node("a", 10, 0, 10), Node("b", 10, 0, 10)});
  EXPECT_DOUBLE_EQ(Cut(weights, stashed, "exact").stages[0].memory,
                   40e6);  // 2 versions, 2 of state
  stashed.weight_versions = WeightVersions::kOne;
  EXPECT_DOUBLE_EQ(Cut(weights, stashed, "exact").stages[0].memory, 30e6);
}

TEST(PartitionGraph, PlacesInputsFirstAndWhatCostsNothingNearby) {
  ProfileGraph graph = Chain({Node("in", 0), Node("a", 10, 5), Node("b", 10), Node("c", 20)});
  graph.nodes[0].role = NodeRole::kInput;
  graph.nodes.push_back(Node("unused", 0, 5));  // of a
  graph.nodes.back().stash = Bytes(0);
  graph.nodes.push_back(Node("hidden", 0));  // into c
  graph.nodes.push_back(Node("late_in", 0));
  graph.nodes.back().role = NodeRole::kInput;
  graph.edges.insert(graph.edges.end(), {{1, 4}, {5, 3}, {6, 3}});
  const GraphPartition partition = Cut(graph, Straight(2), "exact");
  EXPECT_EQ(TextOf(graph, partition), "in late_in a b unused | hidden c");
  EXPECT_EQ(partition.stages[0].boundary, Bytes(0));
}

void ExpectWhole(const ProfileGraph& graph, const GraphPartition& partition) {
  std::vector<int> stage_of(graph.nodes.size(), -1);
  int workers = 0;
  for (size_t stage = 0; stage < partition.stages.size(); ++stage) {
    EXPECT_FALSE(partition.stages[stage].nodes.empty());
    workers += partition.stages[stage].replicas;
    for (const int node : partition.stages[stage].nodes) {
      EXPECT_EQ(stage_of[node], -1) << "node " << node << " stands twice";
      stage_of[node] = static_cast<int>(stage);
    }
  }
  EXPECT_EQ(std::count(stage_of.begin(), stage_of.end(), -1), 0);
  for (const GraphEdge& edge : graph.edges) {
    EXPECT_LE(stage_of[edge.producer], stage_of[edge.consumer]);
  }
  EXPECT_EQ(workers, partition.workers);
}

TEST(PartitionGraph, EveryMethodPlacesEveryNodeOnceAndNoneBeforeItsProducers) {
  KeyedGenerator generator(13);
  for (int round = 0; round < 12; ++round) {
    const ProfileGraph graph = RandomGraph(generator, 12, false);
    for (const GraphMethodInfo& method : KnownGraphMethods()) {
      for (const int workers : {1, 2, 3}) {
        SCOPED_TRACE(absl::StrCat(method.name, ", round ", round, ", ", workers, " workers"));
        ExpectWhole(graph, Cut(graph, Straight(workers), method.name));
        const GraphPartition hybrid = Cut(graph, Hybrid(workers), method.name);
        ExpectWhole(graph, hybrid);
        EXPECT_LE(hybrid.workers, workers);
        EXPECT_LE(Cut(graph, Hybrid(workers), "exact").seconds_per_minibatch,
                  hybrid.seconds_per_minibatch);
      }
    }
  }
}

// Blocks of `width` branches of `length` nodes each, as in Inception.
ProfileGraph WideBlocks(int blocks, int width, int length) {
  ProfileGraph graph;
  graph.nodes.push_back(Node("start", 1, 1));
  int before = 0;
  for (int block = 0; block < blocks; ++block) {
    std::vector<int> ends;
    for (int branch = 0; branch < width; ++branch) {
      int last = before;
      for (int node = 0; node < length; ++node) {
        const int index = static_cast<int>(graph.nodes.size());
        graph.nodes.push_back(Node(absl::StrCat("b", block, ".", branch, ".", node),
                                   1 + (block + branch + node) % 4, 1 + node % 2));
        graph.edges.push_back({last, index});
        last = index;
      }
      ends.push_back(last);
    }
    before = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(Node(absl::StrCat("join", block), 1, 2));
    for (const int end : ends) graph.edges.push_back({end, before});
  }
  return graph;
}

TEST(PartitionGraph, ThinsOutCutsThatAreTooMany) {
  const ProfileGraph graph =
      WideBlocks(3, 5, 6);  // 3 * 7^5 cuts, and no more memory than 4096 need
  const GraphPartition partition = Cut(graph, Straight(4), "exact");
  ExpectWhole(graph, partition);
  EXPECT_THAT(partition.left_out,
              testing::MatchesRegex("the model has more than 4096 cuts; neighbouring nodes were "
                                    "joined until [0-9]+ of 94 were left"));
  EXPECT_LT(partition.seconds_per_minibatch, partition.one_worker_seconds / 4 * 1.05);
}

TEST(PartitionGraph, FallsBackToOneOrderWhereNothingCanBeJoined) {
  ProfileGraph graph;  // two rows of eight, each of the second needs all of the first but one
  for (int node = 0; node < 32; ++node) graph.nodes.push_back(Node(absl::StrCat("n", node), 5, 1));
  for (int first = 0; first < 16; ++first) {
    for (int second = 16; second < 32; ++second) {
      if (second - 16 != first) graph.edges.push_back({first, second});
    }
  }
  const GraphPartition partition = Cut(graph, Straight(4), "exact");
  ExpectWhole(graph, partition);
  EXPECT_EQ(partition.left_out,
            "the model has more than 4096 cuts; only cuts along one order of its nodes were tried");
  EXPECT_DOUBLE_EQ(partition.seconds_per_minibatch, 0.040);  // 8 nodes each; 16 MB both ways: 32 ms
}

TEST(PartitionGraph, SaysWhatIsWrong) {
  const ProfileGraph graph = Chain({Node("a", 10), Node("b", 10)});
  const auto error = [&](const GraphPartitionRequest& request, absl::string_view method) {
    return PartitionGraph(graph, request, method).status();
  };
  EXPECT_EQ(error(Straight(0), "exact"),
            absl::InvalidArgumentError("0 workers; there must be 1 to 1024"));
  EXPECT_EQ(error(Straight(1025), "exact"),
            absl::InvalidArgumentError("1025 workers; there must be 1 to 1024"));
  EXPECT_EQ(error({.workers = 2, .bandwidth = BytesPerSecond(0)}, "exact"),
            absl::InvalidArgumentError("a bandwidth of 0 B/s; must be more than 0"));
  EXPECT_EQ(error({.workers = 2, .compression_ratio = -1.0}, "exact"),
            absl::InvalidArgumentError("an activation compression ratio of -1; must be more than 0 "
                                       "(1: not compressed)"));
  EXPECT_EQ(error(Straight(3), "even"),
            absl::InvalidArgumentError(
                "3 stages, but the model has only 2 layers and every stage needs at least one"));
  std::vector<std::string> names;
  for (const GraphMethodInfo& method : KnownGraphMethods()) names.push_back(method.name);
  EXPECT_EQ(error(Straight(2), "fair"),
            absl::NotFoundError(absl::StrCat("unknown partition method 'fair'; known: ",
                                             absl::StrJoin(names, ", "))));
}

TEST(CheckGraph, RefusesWhatCannotBeCut) {
  EXPECT_EQ(CheckGraph({}),
            absl::InvalidArgumentError("the model has 0 nodes, none of which is a layer to place"));
  ProfileGraph cycle = Chain({Node("a", 1), Node("b", 1), Node("c", 1), Node("d", 1)});
  cycle.edges.push_back({2, 1});
  EXPECT_EQ(CheckGraph(cycle), absl::InvalidArgumentError("the graph has a cycle: b -> c -> b"));
  ProfileGraph loose = Chain({Node("a", 1), Node("b", 1)});
  loose.edges.push_back({0, 2});
  EXPECT_EQ(CheckGraph(loose),
            absl::InvalidArgumentError("an edge names node 2; nodes are 0 to 1"));
  ProfileGraph negative = Chain({Node("a", 1)});
  negative.nodes[0].output = Bytes(-1);
  EXPECT_EQ(CheckGraph(negative),
            absl::InvalidArgumentError("a: output bytes is -1; must not be negative"));
  ProfileGraph large = Chain({Node("a", 1), Node("b", 1)});
  large.nodes[0].parameters = large.nodes[1].parameters = Bytes(int64_t{1} << 52);
  EXPECT_EQ(CheckGraph(large),
            absl::InvalidArgumentError(
                "b: parameter bytes of 4503599627370496 brings the model's sum above "
                "4503599627370496 bytes (4 PiB)"));
}

}  // namespace
}  // namespace siphon
