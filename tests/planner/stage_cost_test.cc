#include "planner/stage_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/layer_cost.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::Field;

// An activation function that saves its output, 60 bytes, a linear layer that saves the same tensor
// as its input for W, and a layer that saves nothing of the boundary.
ModelProfile ThreeLayers() {
  return {.layers = {{.name = "relu",
                      .saved = {{"mask", Bytes(10)}, {"y", Bytes(60)}},
                      .saved_output = Bytes(60)},
                     {.name = "linear",
                      .saved = {{"x", Bytes(60)}, {"z", Bytes(7)}},
                      .saved_input = Bytes(60),
                      .saved_output = Bytes(7),
                      .kept_for_weights = Bytes(60)},
                     {.name = "norm", .saved = {{"mean", Bytes(3)}}}}};
}

TEST(StageCosts, CountsOnceWhatTwoLayersSave) {
  EXPECT_THAT(StageCosts(ThreeLayers(), {.stages = {{0, 3}}}),
              ElementsAre(AllOf(Field(&StageCost::stash, Bytes(10 + 60 + 7 + 3)),
                                Field(&StageCost::kept_for_weights, Bytes(60)))));
}

TEST(StageCosts, CountsOnBothSidesWhatTwoStagesSave) {
  EXPECT_THAT(StageCosts(ThreeLayers(), {.stages = {{0, 1}, {1, 3}}}),
              ElementsAre(Field(&StageCost::stash, Bytes(10 + 60)),
                          Field(&StageCost::stash, Bytes(60 + 7 + 3))));
}

TEST(LayerCosts, GivesASharedTensorToTheSecondLayerAndFreesItWithTheFirst) {
  const auto layers = LayerCosts(ThreeLayers(), {.stages = {{0, 3}}});
  EXPECT_THAT(layers,
              ElementsAre(ElementsAre(LayerCost{.stash = Bytes(10), .kept_for_weights = Bytes(60)},
                                      LayerCost{.stash = Bytes(67), .shared_before = Bytes(60)},
                                      LayerCost{.stash = Bytes(3)})));
  EXPECT_EQ(FreedByBackward(layers[0], 2), Bytes(3));
  EXPECT_EQ(FreedByBackward(layers[0], 1), Bytes(7));
  EXPECT_EQ(FreedByBackward(layers[0], 0), Bytes(70));
  EXPECT_THAT(LayerCosts(ThreeLayers(), {.stages = {{0, 1}, {1, 3}}}),
              ElementsAre(ElementsAre(LayerCost{.stash = Bytes(70)}),
                          ElementsAre(LayerCost{.stash = Bytes(67), .kept_for_weights = Bytes(60)},
                                      LayerCost{.stash = Bytes(3)})));
}

TEST(LayerCosts, AddsUpToTheStage) {
  std::mt19937 random(5);
  const auto roll = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  for (int round = 0; round < 500; ++round) {
    ModelProfile profile;
    StagePartition partition;
    for (int layer = 0; layer < 12; ++layer) {
      if (layer == 0 || roll(3) == 0) partition.stages.push_back({layer, layer});
      ++partition.stages.back().end;
      const Bytes saved(roll(100));
      profile.layers.push_back({.forward = Nanos(roll(9)),
                                .input_backward = Nanos(roll(9)),
                                .saved = {{"all", saved}},
                                .saved_input = Bytes(roll(saved.value)),
                                .saved_output = Bytes(roll(saved.value)),
                                .kept_for_weights = Bytes(roll(150))});
    }
    const std::vector<StageCost> stages = StageCosts(profile, partition);
    const std::vector<std::vector<LayerCost>> layers = LayerCosts(profile, partition);
    ASSERT_EQ(layers.size(), stages.size());
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      StageCost sum;
      Bytes freed;
      for (size_t index = 0; index < layers[stage].size(); ++index) {
        const LayerCost& layer = layers[stage][index];
        EXPECT_GE(FreedByBackward(layers[stage], static_cast<int>(index)), Bytes());
        freed += FreedByBackward(layers[stage], static_cast<int>(index));
        EXPECT_GE(layer.stash, Bytes());
        EXPECT_GE(layer.kept_for_weights, Bytes());
        sum.forward += layer.forward;
        sum.input_backward += layer.input_backward;
        sum.stash += layer.stash;
        sum.kept_for_weights += layer.kept_for_weights;
      }
      EXPECT_EQ(sum.forward, stages[stage].forward);
      EXPECT_EQ(sum.input_backward, stages[stage].input_backward);
      EXPECT_EQ(sum.stash, stages[stage].stash);
      EXPECT_EQ(freed, stages[stage].stash);
      EXPECT_EQ(sum.kept_for_weights, stages[stage].kept_for_weights);
    }
  }
}

// Both layers need 30 bytes in an I. It comes to the first with what the second keeps beyond what
// it saved, but for what the first saved as well.
TEST(StageCosts, AnInputBackwardComesToALayerWithWhatTheOthersKeep) {
  ModelProfile profile{.layers = {{.backward_workspace = Bytes(50),
                                   .input_backward_workspace = Bytes(30),
                                   .weight_backward_workspace = Bytes(9),
                                   .saved = {{"all", Bytes(100)}}},
                                  {.backward_workspace = Bytes(40),
                                   .input_backward_workspace = Bytes(30),
                                   .weight_backward_workspace = Bytes(11),
                                   .saved = {{"all", Bytes(60)}},
                                   .kept_for_weights = Bytes(85)}}};
  const StagePartition partition{.stages = {{0, 2}}};
  StageCost cost = StageCosts(profile, partition)[0];
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackward), Bytes(50));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput), Bytes(25 + 30));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput, Bytes(25)), Bytes(30));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput, Bytes(-25)), Bytes(25 + 30));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput, Bytes(99)), Bytes(0));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardWeight), Bytes(11));

  profile.layers[0].saved_output = profile.layers[1].saved_input = Bytes(20);
  cost = StageCosts(profile, partition)[0];
  EXPECT_EQ(cost.stash, Bytes(140));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput), Bytes(25 + 30));
}

TEST(StageCosts, HalvesThatNobodyMeasuredTakeWhatAWholeBackwardDoes) {
  const ModelProfile profile{.layers = {{.backward_workspace = Bytes(50)}}};
  const StageCost cost = StageCosts(profile, {.stages = {{0, 1}}})[0];
  EXPECT_EQ(cost.input_backward_workspace, Bytes(0));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardInput), Bytes(50));
  EXPECT_EQ(PassWorkspace(cost, ActionKind::kBackwardWeight), Bytes(50));
}

}  // namespace
}  // namespace siphon
