#include "pipeline/loss_scale.h"

#include <gtest/gtest.h>

namespace siphon {
namespace {

TEST(LossScale, HalvesAfterAStepThatOverflowsAndCountsIt) {
  LossScale scale{.scale = 1024, .fine_steps = 17, .skipped_steps = 3};
  scale = AfterStep(scale, StepTaken::kSkipped);
  EXPECT_EQ(scale, (LossScale{.scale = 512, .fine_steps = 0, .skipped_steps = 4}));
}

TEST(LossScale, DoublesAfterSoManyFineStepsInARow) {
  LossScale scale{.scale = 1024};
  for (int64_t step = 1; step < kStepsToGrow; ++step) {
    scale = AfterStep(scale, StepTaken::kUpdated);
    ASSERT_EQ(scale, (LossScale{.scale = 1024, .fine_steps = step}));
  }
  scale = AfterStep(scale, StepTaken::kUpdated);
  EXPECT_EQ(scale, (LossScale{.scale = 2048, .fine_steps = 0}));
}

// An overflow in between starts the count anew.
TEST(LossScale, GrowsFromItsLastOverflowOn) {
  LossScale scale{.scale = 8};
  for (int64_t step = 1; step < kStepsToGrow; ++step) scale = AfterStep(scale, StepTaken::kUpdated);
  scale = AfterStep(scale, StepTaken::kSkipped);
  for (int64_t step = 1; step < kStepsToGrow; ++step) scale = AfterStep(scale, StepTaken::kUpdated);
  EXPECT_EQ(scale.scale, 4);
  EXPECT_EQ(AfterStep(scale, StepTaken::kUpdated).scale, 8);
}

TEST(LossScale, ReachesItsLeastValueInThirtyOverflows) {
  LossScale scale{.scale = kFirstLossScale};
  for (int step = 0; step < 30; ++step) {
    EXPECT_GE(scale.scale, kLeastLossScale);
    scale = AfterStep(scale, StepTaken::kSkipped);
  }
  EXPECT_EQ(scale.scale, kLeastLossScale);
}

}  // namespace
}  // namespace siphon
