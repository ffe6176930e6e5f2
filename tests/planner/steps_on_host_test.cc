// Which layers of a stage the host steps.

#include "planner/steps_on_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace siphon {
namespace {

constexpr int kLast = std::numeric_limits<int>::max();

PlannedGroup State(StageRange layers, Placement placement) {
  return {.group = {.kind = GroupKind::kOptimizerState, .layers = layers},
          .choice = {.placement = placement}};
}

TEST(StepsOnHost, IsWhatThePlanHasWithTheHost) {
  StagePlan stage{.groups = {State({5, 6}, Placement::kKeep), State({3, 5}, Placement::kHostSwap),
                             State({8, 9}, Placement::kPeerSwap)},
                  .update = UpdatePlace::kHost};
  EXPECT_FALSE(StepsOnHost(stage, stage.groups[0]));
  EXPECT_TRUE(StepsOnHost(stage, stage.groups[1]));
  EXPECT_FALSE(StepsOnHost(stage, stage.groups[2]));
  EXPECT_TRUE(StepsOnHost(stage, 4));
  EXPECT_FALSE(StepsOnHost(stage, 5));
  EXPECT_TRUE(StepsOnHost(stage, 6)) << "without a group of optimizer state";
  EXPECT_TRUE(AllStepOnHost(stage, {3, 5}));
  EXPECT_FALSE(AllStepOnHost(stage, {4, 7}));
  EXPECT_TRUE(AnyStepsOnHost(stage, {4, 7}));
  EXPECT_FALSE(AnyStepsOnHost(stage, {5, 6}));
  EXPECT_THAT(LayersSteppedOnHost(stage),
              testing::ElementsAre(StageRange{0, 5}, StageRange{6, 8}, StageRange{9, kLast}));
  stage.groups.clear();
  EXPECT_THAT(LayersSteppedOnHost(stage), testing::ElementsAre(StageRange{0, kLast}));
}

TEST(StepsOnHost, IsNothingOfAStageThatStepsOnTheDevice) {
  const StagePlan stage{.groups = {State({3, 5}, Placement::kHostSwap)}};
  EXPECT_FALSE(StepsOnHost(stage, stage.groups[0]));
  EXPECT_FALSE(StepsOnHost(stage, 0));
  EXPECT_TRUE(LayersSteppedOnHost(stage).empty());
}

}  // namespace
}  // namespace siphon
