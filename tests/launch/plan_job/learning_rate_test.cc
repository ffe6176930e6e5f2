#include "launch/plan_job/learning_rate.h"

#include <gtest/gtest.h>

#include <string>

namespace siphon {
namespace {

TrainConfig TenSteps(const std::string& schedule) {
  TrainConfig train;
  train.steps = 10;
  train.warmup_steps = 2;
  train.learning_rate = 1.0;
  train.final_learning_rate_fraction = 0.1;
  train.schedule = schedule;
  return train;
}

TEST(LearningRate, WarmsUpLinearlyAndReachesItsValueAtTheLastWarmUpStep) {
  const TrainConfig train = TenSteps("constant");
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 0), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 1), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 9), 1.0);
}

TEST(LearningRate, LinearEndsAtTheFinalFractionInTheLastStep) {
  const TrainConfig train = TenSteps("linear");
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 2), 1.0);
  // Seven decay steps from 1.0 to 0.1.
  EXPECT_NEAR(LearningRateAt(train, 3), 1.0 - 0.9 / 7, 1e-12);
  EXPECT_NEAR(LearningRateAt(train, 9), 0.1, 1e-12);
  EXPECT_NEAR(LearningRateAt(train, 1000), 0.1, 1e-12);
}

TEST(LearningRate, CosineIsHalfWayInTheMiddle) {
  TrainConfig train = TenSteps("cosine");
  train.steps = 11;  // eight decay steps, the fourth in the middle
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 2), 1.0);
  EXPECT_NEAR(LearningRateAt(train, 6), 0.55, 1e-12);
  EXPECT_NEAR(LearningRateAt(train, 10), 0.1, 1e-12);
}

TEST(LearningRate, ASingleStepWithoutWarmUpTakesTheFullRate) {
  TrainConfig train = TenSteps("cosine");
  train.steps = 1;
  train.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(train, 0), 1.0);
}

}  // namespace
}  // namespace siphon
