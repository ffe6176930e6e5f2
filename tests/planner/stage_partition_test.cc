#include "planner/stage_partition.h"

#include <gtest/gtest.h>

#include <vector>

namespace siphon {
namespace {

ModelSpec SmallGpt() {
  ModelOptions options;
  options.layers = 2;
  absl::StatusOr<ModelSpec> model = BuildModelSpec(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

TEST(StagePartition, PrintsFirstAndLastLayerOfEachStage) {
  EXPECT_EQ(ToString({{{0, 2}, {2, 3}, {3, 4}}}, SmallGpt()),
            "0: transformer.embeddings .. transformer.h.0 (2 layers)\n"
            "1: transformer.h.1 (1 layer)\n"
            "2: transformer.head (1 layer)\n");
}

TEST(StagePartition, FindsTheStageOfALayer) {
  const StagePartition partition{{{0, 2}, {2, 3}, {3, 4}}};
  EXPECT_EQ(StageOfLayer(partition, 0), StageId(0));
  EXPECT_EQ(StageOfLayer(partition, 1), StageId(0));
  EXPECT_EQ(StageOfLayer(partition, 2), StageId(1));
  EXPECT_EQ(StageOfLayer(partition, 3), StageId(2));
}

TEST(SharedParameters, AreThoseThatSeveralStagesUse) {
  const std::vector<SharedParameter> shared =
      SharedParameters(SmallGpt(), {{{0, 2}, {2, 3}, {3, 4}}});
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].name, "transformer.wte.weight");
  EXPECT_EQ(shared[0].uses,
            (std::vector<ParameterUse>{{.layer = 0, .index = 0}, {.layer = 3, .index = 2}}));
  EXPECT_EQ(shared[0].stages, (std::vector<StageId>{StageId(0), StageId(2)}));
}

TEST(SharedParameters, AreNoneInOneStage) {
  EXPECT_TRUE(SharedParameters(SmallGpt(), {{{0, 4}}}).empty());
}

}  // namespace
}  // namespace siphon
