// Optimizer steps on the host: what they copy when, and what they are refused for. Whole jobs with
// such steps: tests/pipeline/synthetic, tests/conformance.

#include "pipeline/host_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "tests/pipeline/fake_stage.h"
#include "tests/support/in_process_parking.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr StageRange kAllLayers{0, 100};

// One stage of one parameter (FakeStage), whose gradient is 1 after one backward.
class HostStepsOfOneStage : public testing::Test {
 protected:
  HostStepsOfOneStage() {
    layout_.worker_of_stage = {WorkerId(0)};
    layout_.owned_parameters = {1};
    layout_.memory.stages = {{.update = UpdatePlace::kHost}};
    steps_ = std::make_unique<HostSteps>(layout_, stages_, parking_.engine());
    recorder_.BeginAction({});
  }
  // Forward and backward of a microbatch.
  void MakeGradient() {
    const MicrobatchId first(0);
    ASSERT_TRUE(stage_.BeginStep({.microbatches = {{}}}).ok());
    ASSERT_TRUE(stage_.Forward(first).ok());
    ASSERT_TRUE(stage_.Backward(first).ok());
  }
  absl::Status Step(double learning_rate) {
    return steps_->Step(StageId(0), kAllLayers, {.learning_rate = learning_rate}, recorder_);
  }
  Bytes BytesOut() { return parking_.engine()->TakeBytesOut()[Placement::kHostSwap]; }

  FakeStage stage_{StageId(0), 1, {}};
  std::map<StageId, StageCompute*> stages_ = {{StageId(0), &stage_}};
  WorkerLayout layout_;
  InProcessParking parking_{WorkerParking()};
  StepRecorder recorder_;
  std::unique_ptr<HostSteps> steps_;
};

TEST_F(HostStepsOfOneStage, CopyTheParameterOutOnceAndTheGradientEachTime) {
  EXPECT_EQ(steps_->MemoryNeeded(), Bytes(128)) << "parameter and gradient, 64 bytes each";
  ASSERT_TRUE(steps_->Begin(parking_.HostMemory(Bytes(128))).ok());
  float expected = 0;
  for (const double learning_rate : {0.5, 0.25}) {
    MakeGradient();
    ASSERT_TRUE(Step(learning_rate).ok());
    ASSERT_TRUE(steps_->EndStep(recorder_).ok());
    expected -= static_cast<float>(learning_rate);
    EXPECT_EQ(stage_.parameter(), expected);
    EXPECT_EQ(BytesOut(), Bytes(learning_rate == 0.5 ? 8 : 4));
  }
}

TEST_F(HostStepsOfOneStage, SendTheGradientsOfLaterStepsAheadAndStepOnlyTheirLayers) {
  ASSERT_TRUE(steps_->Begin(parking_.HostMemory(Bytes(128))).ok());
  for (const Bytes parameter_and_gradient : {Bytes(8), Bytes(4)}) {
    const float before = stage_.parameter();
    MakeGradient();
    ASSERT_TRUE(steps_->Step(StageId(0), {1, 4}, {.learning_rate = 1}, recorder_).ok());
    ASSERT_TRUE(steps_->Await(StageId(0), recorder_).ok());
    EXPECT_EQ(stage_.parameter(), before);
    EXPECT_EQ(BytesOut(), parameter_and_gradient);
    ASSERT_TRUE(Step(1).ok());
    ASSERT_TRUE(steps_->EndStep(recorder_).ok());
    EXPECT_EQ(stage_.parameter(), before - 1);
    EXPECT_EQ(BytesOut(), Bytes(0)) << "it had left before";
  }
}

TEST_F(HostStepsOfOneStage, LeaveGradientsThatMoveOtherwiseToTheirOwnStep) {
  layout_.memory.stages[0].groups = {
      {.group = {.kind = GroupKind::kGradients, .layers = {0, 1}, .bytes = Bytes(4)},
       .choice = {.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(4)}}}}};
  HostSteps steps(layout_, stages_, parking_.engine());
  ASSERT_TRUE(steps.Begin(parking_.HostMemory(Bytes(128))).ok());
  MakeGradient();
  ASSERT_TRUE(steps.Step(StageId(0), {1, 4}, {.learning_rate = 1}, recorder_).ok());
  EXPECT_EQ(BytesOut(), Bytes(0));
  ASSERT_TRUE(steps.Step(StageId(0), kAllLayers, {.learning_rate = 1}, recorder_).ok());
  ASSERT_TRUE(steps.EndStep(recorder_).ok());
  EXPECT_EQ(stage_.parameter(), -1.0f);
  EXPECT_EQ(BytesOut(), Bytes(8));
}

TEST_F(HostStepsOfOneStage, HaveNothingOfLayersThatStepOnTheDevice) {
  EXPECT_TRUE(steps_->Has(StageId(0), kAllLayers));
  EXPECT_FALSE(steps_->Has(StageId(0), {1, 4}));
  EXPECT_FALSE(steps_->Has(StageId(1), kAllLayers));
  layout_.memory.stages[0].groups = {
      {.group = {.kind = GroupKind::kOptimizerState, .layers = {0, 1}}}};
  HostSteps steps(layout_, stages_, nullptr);
  EXPECT_FALSE(steps.Has(StageId(0), kAllLayers));
  EXPECT_EQ(steps.MemoryNeeded(), Bytes(0));
  EXPECT_TRUE(steps.Begin({}).ok()) << "where nothing is on the host, nothing is asked for";
}

TEST_F(HostStepsOfOneStage, WaitIsAWait) {
  ASSERT_TRUE(steps_->Begin(parking_.HostMemory(Bytes(128))).ok());
  MakeGradient();
  ASSERT_TRUE(Step(1).ok());
  ASSERT_TRUE(steps_->EndStep(recorder_).ok());
  bool waited = false;
  for (const Interval& interval : recorder_.TakeTimeline()) {
    waited |= interval.kind == IntervalKind::kWait;
  }
  EXPECT_TRUE(waited);
}

TEST_F(HostStepsOfOneStage, NeedTheirMemory) {
  const absl::Status small = steps_->Begin(parking_.HostMemory(Bytes(64)));
  EXPECT_EQ(small.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(small.message()), HasSubstr("64 bytes there for the 128 they take"));
  HostSteps nowhere(layout_, stages_, nullptr);
  EXPECT_FALSE(nowhere.Begin(parking_.HostMemory(Bytes(128))).ok());
  layout_.memory.stages[0].update = UpdatePlace::kDevice;
  HostSteps none(layout_, stages_, nullptr);
  EXPECT_EQ(none.MemoryNeeded(), Bytes(0));
  EXPECT_TRUE(none.Begin({}).ok());
}

TEST_F(HostStepsOfOneStage, GiveBackTheStagesErrors) {
  ASSERT_TRUE(steps_->Begin(parking_.HostMemory(Bytes(128))).ok());
  MakeGradient();
  stage_.FailNext();
  EXPECT_EQ(Step(1), absl::InternalError("injected"));
}

}  // namespace
}  // namespace siphon
