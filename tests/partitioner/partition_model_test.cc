#include "partitioner/partition_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/keyed_hash.h"

namespace siphon {
namespace {

ModelSpec ModelOfCosts(const std::vector<int64_t>& costs) {
  ModelSpec model;
  for (size_t layer = 0; layer < costs.size(); ++layer) {
    LayerSpec spec;
    spec.name = absl::StrCat("layer", layer);
    spec.forward_flops = costs[layer];
    model.layers.push_back(spec);
  }
  return model;
}

std::vector<int> SizesOf(const StagePartition& partition) {
  std::vector<int> sizes;
  for (const StageRange& stage : partition.stages) sizes.push_back(stage.end - stage.begin);
  return sizes;
}

std::vector<int> Sizes(const std::vector<int64_t>& costs, int stages, absl::string_view method) {
  const absl::StatusOr<StagePartition> partition =
      PartitionModel(ModelOfCosts(costs), stages, method);
  EXPECT_TRUE(partition.ok()) << partition.status();
  return partition.ok() ? SizesOf(*partition) : std::vector<int>{};
}

// (largest stage, sum of squares) of a partition.
using Score = std::pair<int64_t, int64_t>;

Score ScoreOf(const std::vector<int64_t>& costs, const StagePartition& partition) {
  Score score{0, 0};
  for (const StageRange& stage : partition.stages) {
    int64_t sum = 0;
    for (int layer = stage.begin; layer < stage.end; ++layer) sum += costs[layer];
    score.first = std::max(score.first, sum);
    score.second += sum * sum;
  }
  return score;
}

// The best score of all partitions of layers [begin, end) into `stages`, by trying every cut.
Score BestByForce(const std::vector<int64_t>& costs, int stages, StagePartition& so_far) {
  const int layers = static_cast<int>(costs.size());
  const int begin = so_far.stages.empty() ? 0 : so_far.stages.back().end;
  Score best{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
  const int left = stages - static_cast<int>(so_far.stages.size());
  if (left == 0) return begin == layers ? ScoreOf(costs, so_far) : best;
  for (int end = begin + 1; end <= layers; ++end) {
    so_far.stages.push_back({begin, end});
    best = std::min(best, BestByForce(costs, stages, so_far));
    so_far.stages.pop_back();
  }
  return best;
}

TEST(PartitionEven, GivesTheSurplusToEarlierStages) {
  EXPECT_EQ(Sizes({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, "even"), (std::vector<int>{3, 3, 2, 2}));
  EXPECT_EQ(Sizes({9, 1, 1}, 3, "even"), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(Sizes({9, 1, 1}, 1, "even"), (std::vector<int>{3}));
}

TEST(PartitionBalanced, MakesTheLargestStageSmallest) {
  EXPECT_EQ(Sizes({5, 1, 1, 1, 1, 1}, 2, "balanced"), (std::vector<int>{1, 5}));
  EXPECT_EQ(Sizes({1, 1, 1, 1, 1, 5}, 2, "balanced"), (std::vector<int>{5, 1}));
  // The heavy middle sets the limit of 9; around it the rest is spread as evenly as can be.
  EXPECT_EQ(Sizes({1, 1, 9, 1, 1, 1, 1}, 4, "balanced"), (std::vector<int>{2, 1, 2, 2}));
}

TEST(PartitionBalanced, IsTheBestOfAllPartitionsOfSmallModels) {
  KeyedGenerator generator(3);
  for (int round = 0; round < 150; ++round) {
    std::vector<int64_t> costs(1 + generator.Below(9));
    for (int64_t& cost : costs) cost = static_cast<int64_t>(generator.Below(round % 2 ? 5 : 100));
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      const absl::StatusOr<StagePartition> partition =
          PartitionModel(ModelOfCosts(costs), stages, "balanced");
      ASSERT_TRUE(partition.ok()) << partition.status();
      StagePartition empty;
      EXPECT_EQ(ScoreOf(costs, *partition), BestByForce(costs, stages, empty))
          << "round " << round << ", " << stages << " stages";
    }
  }
}

TEST(PartitionBalanced, TakesCostsNearTheEndOf64Bits) {
  const int64_t quarter = std::numeric_limits<int64_t>::max() / 4;
  EXPECT_EQ(Sizes({quarter, quarter, quarter, quarter}, 2, "balanced"), (std::vector<int>{2, 2}));
}

TEST(PartitionModel, EveryMethodPutsEveryLayerInOneStageInOrder) {
  const std::vector<int64_t> costs = {3, 0, 0, 8, 1, 1, 4, 0, 2, 2, 7};
  for (const std::string& method : KnownPartitionMethods()) {
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      const absl::StatusOr<StagePartition> partition =
          PartitionModel(ModelOfCosts(costs), stages, method);
      ASSERT_TRUE(partition.ok()) << partition.status();
      ASSERT_EQ(partition->stages.size(), static_cast<size_t>(stages));
      int next = 0;
      for (const StageRange& stage : partition->stages) {
        EXPECT_EQ(stage.begin, next);
        EXPECT_GT(stage.end, stage.begin);
        next = stage.end;
      }
      EXPECT_EQ(next, static_cast<int>(costs.size()));
    }
  }
}

TEST(PartitionModel, CutsADeepModelQuickly) {
  const std::vector<int64_t> costs(5000, 7);
  const std::vector<int> sizes = Sizes(costs, 64, "balanced");
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 79);
  EXPECT_GE(*std::min_element(sizes.begin(), sizes.end()), 78);
}

TEST(PartitionModel, SaysWhatIsWrong) {
  const ModelSpec model = ModelOfCosts({1, 2, 3});
  EXPECT_EQ(PartitionModel(model, 4, "balanced").status(),
            absl::InvalidArgumentError(
                "4 stages, but the model has only 3 layers and every stage needs at least one"));
  EXPECT_EQ(PartitionModel(model, 0, "even").status(),
            absl::InvalidArgumentError("0 stages; there must be at least 1"));
  const absl::Status unknown = PartitionModel(model, 2, "fair").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  std::string expected = "unknown partition method 'fair'; known: ";
  for (const std::string& method : KnownPartitionMethods()) {
    if (expected.back() != ' ') expected += ", ";
    expected += method;
  }
  EXPECT_EQ(std::string(unknown.message()), expected);
}

TEST(ExplicitPartition, TakesTheNumbersAsTheyAre) {
  const ModelSpec model = ModelOfCosts({1, 1, 1, 1, 1, 1});
  const absl::StatusOr<StagePartition> partition = ExplicitPartition(model, {3, 1, 2});
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(*partition, (StagePartition{{{0, 3}, {3, 4}, {4, 6}}}));
}

TEST(ExplicitPartition, NamesBothSums) {
  const ModelSpec model = ModelOfCosts({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(
      ExplicitPartition(model, {3, 2, 3}).status(),
      absl::InvalidArgumentError("partition [3, 2, 3] adds up to 8 layers, but the model has 6"));
  EXPECT_EQ(ExplicitPartition(model, {}).status(),
            absl::InvalidArgumentError("partition [] adds up to 0 layers, but the model has 6"));
  EXPECT_EQ(ExplicitPartition(model, {3, 0, 3}).status(),
            absl::InvalidArgumentError(
                "partition [3, 0, 3]: stage 1 has 0 layers; there must be at least 1"));
}

}  // namespace
}  // namespace siphon
