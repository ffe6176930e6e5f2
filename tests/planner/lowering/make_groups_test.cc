#include "planner/lowering/make_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace siphon {
namespace {

LayerProfile Layer(int64_t saved, int64_t boundary) {
  return {.forward = Nanos(10),
          .parameters = Bytes(4),
          .gradients = Bytes(4),
          .optimizer_state = Bytes(8),
          .boundary = Bytes(boundary),
          .saved = {{"all", Bytes(saved)}}};
}

// Layers 0 and 1 both save what goes from the one to the other (6 bytes), and so do 2 and 3 (5).
ModelProfile FourLayers() {
  ModelProfile profile{.layers = {Layer(20, 6), Layer(30, 7), Layer(40, 5), Layer(50, 9)}};
  profile.layers[0].saved_output = Bytes(6);
  profile.layers[1].saved_input = Bytes(6);
  profile.layers[2].saved_output = Bytes(5);
  profile.layers[3].saved_input = Bytes(5);
  return profile;
}

constexpr StageRange kAll{0, 4};

TensorGroup Activations(const StageRange& layers, const StageRange& stage = kAll) {
  return GroupOf(FourLayers(), stage, GroupKind::kActivations, layers);
}

TEST(GroupOf, GivesWhatTwoLayersSaveToTheSecond) {
  EXPECT_EQ(Activations({0, 1}).bytes, Bytes(20 - 6));
  EXPECT_EQ(Activations({1, 2}).bytes, Bytes(30));
  EXPECT_EQ(Activations({2, 3}).bytes, Bytes(40 - 5));
  EXPECT_EQ(Activations({3, 4}).bytes, Bytes(50));
  EXPECT_EQ(Activations({0, 2}).bytes, Bytes(44));
  EXPECT_EQ(Activations(kAll).bytes, Bytes(129));
}

TEST(GroupOf, SharesNothingAcrossStages) {
  EXPECT_EQ(Activations({2, 3}, {0, 3}).bytes, Bytes(40));
  EXPECT_EQ(Activations({3, 4}, {3, 4}).bytes, Bytes(50));
}

TEST(GroupOf, KeepsTheBoundaryBeforeItForARecomputation) {
  EXPECT_EQ(Activations({0, 2}).input, Bytes(0)) << "the model's input is data";
  EXPECT_EQ(Activations({2, 3}).input, Bytes(7));
  EXPECT_EQ(Activations({1, 2}, {1, 4}).input, Bytes(6));
  EXPECT_EQ(Activations({1, 4}).recompute, Nanos(30));
}

// Of 10 ns a forward, 7 until the last tensor that a backward reads; 12 is more than a forward.
TEST(GroupOf, ComputesItsLastLayerOnlyAsFarAsABackwardReads) {
  ModelProfile profile = FourLayers();
  for (LayerProfile& layer : profile.layers) layer.recompute = Nanos(7);
  const auto recompute = [&](const StageRange& layers) {
    return GroupOf(profile, kAll, GroupKind::kActivations, layers).recompute;
  };
  EXPECT_EQ(recompute({1, 2}), Nanos(7));
  EXPECT_EQ(recompute({1, 4}), Nanos(10 + 10 + 7));
  EXPECT_EQ(recompute(kAll), Nanos(37));
  profile.layers[3].recompute = Nanos(12);
  EXPECT_EQ(recompute({1, 4}), Nanos(30));
}

TEST(GroupOf, KeepsWhatItSharesWithTheLayerBeforeAsItsInput) {
  EXPECT_EQ(Activations({1, 2}).input, Bytes(6)) << "as much as without a layer before";
  EXPECT_EQ(Activations({3, 4}).input, Bytes(5));
  EXPECT_EQ(Activations({0, 1}).input, Bytes(0)) << "what the layer behind has is not its own";
}

TEST(GroupOf, NeverKeepsMoreForARecomputationThanItHas) {
  ModelProfile profile = FourLayers();
  profile.layers[1].boundary = Bytes(1000);
  EXPECT_EQ(GroupOf(profile, kAll, GroupKind::kActivations, {2, 3}).input, Bytes(35));
}

TEST(GroupOf, AddsUpWhatBelongsToNoMicrobatch) {
  const ModelProfile profile = FourLayers();
  EXPECT_EQ(GroupOf(profile, kAll, GroupKind::kParameters, {0, 3}).bytes, Bytes(12));
  EXPECT_EQ(GroupOf(profile, kAll, GroupKind::kGradients, {0, 2}).bytes, Bytes(8));
  EXPECT_EQ(GroupOf(profile, kAll, GroupKind::kOptimizerState, kAll).bytes, Bytes(32));
  EXPECT_EQ(GroupOf(profile, kAll, GroupKind::kOptimizerState, kAll).recompute, Nanos(0));
}

TEST(KeepEverything, HasAGroupALayerAndKindThatIsNotEmpty) {
  ModelProfile profile = FourLayers();
  profile.layers[1].parameters = Bytes(0);
  profile.layers[1].gradients = Bytes(0);
  profile.layers[1].optimizer_state = Bytes(0);
  const MemoryPlan plan = KeepEverything(profile, {.stages = {{0, 2}, {2, 4}}});
  ASSERT_EQ(plan.stages.size(), 2u);
  std::vector<GroupKind> kinds;
  for (const PlannedGroup& planned : plan.stages[0].groups) kinds.push_back(planned.group.kind);
  EXPECT_THAT(kinds, testing::ElementsAre(GroupKind::kActivations, GroupKind::kActivations,
                                          GroupKind::kParameters, GroupKind::kGradients,
                                          GroupKind::kOptimizerState));
  EXPECT_EQ(plan.stages[1].groups.size(), 8u);
  EXPECT_EQ(plan.stages[1].groups[0].group.layers, (StageRange{2, 3}));
  EXPECT_EQ(BytesWith(plan, Placement::kRecompute, {{1}, {1}}), Bytes(0));
}

TEST(GroupOf, CutsAStageIntoGroupsThatAddUpToIt) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 dice(seed);
    const auto roll = [&dice](int limit) { return static_cast<int>(dice() % limit); };
    ModelProfile profile;
    const int layers = 2 + roll(6);
    for (int layer = 0; layer < layers; ++layer) {
      profile.layers.push_back(Layer(20 + roll(50), 1 + roll(9)));
      profile.layers.back().saved_input = Bytes(roll(10));
      profile.layers.back().saved_output = Bytes(roll(10));
    }
    const int cut = 1 + roll(layers - 1);
    const auto bytes = [&](int begin, int end) {
      return GroupOf(profile, {0, layers}, GroupKind::kActivations, {begin, end}).bytes;
    };
    EXPECT_EQ(bytes(0, cut) + bytes(cut, layers), bytes(0, layers)) << seed;
  }
}

}  // namespace
}  // namespace siphon
