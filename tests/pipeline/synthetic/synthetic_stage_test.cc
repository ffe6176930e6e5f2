#include "pipeline/synthetic/synthetic_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/pipeline/stage_conformance.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Four layers on two stages, of round figures.
ModelProfile RoundProfile() {
  ModelProfile profile{.model = "round"};
  for (int layer = 0; layer < 4; ++layer) {
    profile.layers.push_back({.name = absl::StrCat("layer", layer),
                              .forward = Nanos(10),
                              .input_backward = Nanos(11),
                              .weight_backward = Nanos(12),
                              .optimizer = Nanos(3),
                              .parameters = Bytes(1000),
                              .gradients = Bytes(2000),
                              .optimizer_state = Bytes(4000),
                              .boundary = Bytes(50),
                              .forward_workspace = Bytes(7),
                              .backward_workspace = Bytes(5),
                              .saved = {{"saved", Bytes(100)}},
                              .kept_for_weights = Bytes(30)});
  }
  return profile;
}

class SyntheticStageOfTwo : public testing::Test {
 protected:
  std::unique_ptr<StageCompute> MakeStage(int stage) {
    auto made = MakeSyntheticStage(profile_, EvenPartition(2, 2), StageId(stage),
                                   {.ledger = &ledgers_[stage], .clock = StandingClock(now_)});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  StageWorld World() {
    return {.make = [this](int stage) { return MakeStage(stage); },
            .train = train_,
            .evaluate = evaluate_};
  }
  static StepInputs Inputs(StepMode mode) {
    return {.mode = mode, .microbatches = std::vector<MicrobatchData>(2)};
  }
  Bytes Used(int stage, MemoryKind kind) { return ledgers_[stage].UsedByKind()[kind]; }

  ModelProfile profile_ = RoundProfile();
  const StepInputs train_ = Inputs(StepMode::kTrain);
  const StepInputs evaluate_ = Inputs(StepMode::kEvaluate);
  MemoryLedger ledgers_[2] = {MemoryLedger(Bytes(0)), MemoryLedger(Bytes(0))};
  std::shared_ptr<Nanos> now_ = std::make_shared<Nanos>();
};

TEST_F(SyntheticStageOfTwo, PassesRunOnceAndInOrder) { ExpectPassesRunOnceAndInOrder(World()); }
TEST_F(SyntheticStageOfTwo, HalvesRunOnceAndInOrder) { ExpectHalvesRunOnceAndInOrder(World()); }
TEST_F(SyntheticStageOfTwo, BoundariesExistWhereTheyMakeSense) {
  ExpectBoundariesExistWhereTheyMakeSense(World());
}
TEST_F(SyntheticStageOfTwo, DroppedLayersComeBackOnce) { ExpectDroppedLayersComeBackOnce(World()); }

TEST_F(SyntheticStageOfTwo, CollectedLayersMayBeAway) { ExpectCollectedLayersMayBeAway(World()); }

// By hand. Stage 1 saves 100 bytes a layer and takes 50 bytes of boundary each way.
TEST_F(SyntheticStageOfTwo, TakesTheTimeAndTheBytesOfTheProfile) {
  const auto first = MakeStage(0);
  const auto last = MakeStage(1);
  const MicrobatchId zero(0);
  EXPECT_EQ(Used(1, MemoryKind::kParameters), Bytes(2000));
  EXPECT_EQ(Used(1, MemoryKind::kGradients), Bytes(4000));
  EXPECT_EQ(Used(1, MemoryKind::kOptimizer), Bytes(8000));
  ASSERT_TRUE(first->BeginStep(train_).ok());
  ASSERT_TRUE(last->BeginStep(train_).ok());

  ASSERT_TRUE(first->Forward(zero).ok());
  EXPECT_EQ(*now_, Nanos(20));
  EXPECT_EQ(Used(0, MemoryKind::kActivations), Bytes(200));
  EXPECT_EQ(Used(0, MemoryKind::kBoundary), Bytes(50));
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  EXPECT_EQ(Used(1, MemoryKind::kBoundary), Bytes(50));
  ASSERT_TRUE(last->Forward(zero).ok());
  EXPECT_EQ(Used(1, MemoryKind::kBoundary), Bytes(0));
  EXPECT_EQ(ledgers_[1].peak(), Bytes(14000 + 200 + 50 + 7));

  ASSERT_TRUE(last->BackwardInput(zero).ok());
  EXPECT_EQ(*now_, Nanos(40 + 22));
  EXPECT_EQ(Used(1, MemoryKind::kActivations), Bytes(60));  // for W
  EXPECT_EQ(Used(1, MemoryKind::kBoundary), Bytes(50));
  ASSERT_TRUE(last->BackwardWeight(zero).ok());
  EXPECT_EQ(*now_, Nanos(62 + 24));
  EXPECT_EQ(Used(1, MemoryKind::kActivations), Bytes(0));
  PassOn(*last, Boundary::kInputGradient, *first, Boundary::kOutputGradient, zero);
  ASSERT_TRUE(last->Release(Boundary::kInputGradient, zero).ok());
  ASSERT_TRUE(first->Backward(zero).ok());
  EXPECT_EQ(*now_, Nanos(86 + 46));
  EXPECT_EQ(ledgers_[1].used(), Bytes(14000));
  // The input half of layer 1 held 30 + 100, the workspace and both boundaries.
  EXPECT_EQ(ledgers_[1].PeakByKind()[MemoryKind::kBoundary], Bytes(50));
}

// A stage that recomputes holds the boundary before it alone, from F until B comes to its layers.
TEST_F(SyntheticStageOfTwo, DroppedLayersTakeTheirForwardAgain) {
  const auto first = MakeStage(0);
  const auto last = MakeStage(1);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  ASSERT_TRUE(last->BeginStep(train_).ok());
  ASSERT_TRUE(first->Forward(zero).ok());
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  ASSERT_TRUE(last->Drop(zero, {{2, 3}}).ok());
  ASSERT_TRUE(last->Drop(zero, {{3, 4}}).ok());
  ASSERT_TRUE(last->Forward(zero).ok());
  EXPECT_EQ(Used(1, MemoryKind::kActivations), Bytes(100));  // 50 before each
  const Nanos forwards = *now_;
  ledgers_[1].ResetPeak();
  ASSERT_TRUE(last->Backward(zero).ok());
  EXPECT_EQ(*now_ - forwards, Nanos(2 * (10 + 23)));
  EXPECT_EQ(ledgers_[1].PeakByKind()[MemoryKind::kActivations], Bytes(50 + 100));
  EXPECT_EQ(ledgers_[1].PeakByKind()[MemoryKind::kWorkspace], Bytes(5 + 2));
}

TEST_F(SyntheticStageOfTwo, AMessageOfAnotherMicrobatchIsNamed) {
  const auto first = MakeStage(0);
  const auto last = MakeStage(1);
  const MicrobatchId zero(0);
  const MicrobatchId one(1);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  ASSERT_TRUE(last->BeginStep(train_).ok());
  ASSERT_TRUE(first->Forward(one).ok());
  const auto sent = first->Buffers(Boundary::kOutput, one);
  const auto received = last->Buffers(Boundary::kInput, zero);
  ASSERT_TRUE(sent.ok() && received.ok());
  std::copy((*sent)[0].begin(), (*sent)[0].end(), (*received)[0].begin());
  EXPECT_EQ(last->Forward(zero),
            absl::DataLossError("the input of microbatch 0: byte 0 of 50 is not what the other "
                                "stage makes; it is that of microbatch 1"));
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, one);
  const auto again = last->Buffers(Boundary::kInput, one);
  ASSERT_TRUE(again.ok());
  (*again)[0][17] ^= std::byte{4};
  EXPECT_EQ(last->Forward(one), absl::DataLossError("the input of microbatch 1: byte 17 of 50 is "
                                                    "not what the other stage makes"));
}

// Brings back what was saved but for one bit, or nothing at all.
class LossyWatch final : public ParkingWatch {
 public:
  enum class Loss { kBit, kAll };
  LossyWatch(StageCompute* stage, Loss loss) : ParkingWatch(stage), stage_(stage), loss_(loss) {}
  absl::Status Need(MicrobatchId microbatch, StageRange layers) override {
    if (loss_ == Loss::kAll) return absl::OkStatus();
    EXPECT_TRUE(ParkingWatch::Need(microbatch, layers).ok());
    (*stage_->SavedTensors(microbatch, layers))[0][99] ^= std::byte{128};
    return absl::OkStatus();
  }

 private:
  StageCompute* const stage_;
  const Loss loss_;
};

TEST_F(SyntheticStageOfTwo, WhatComesBackOtherwiseThanItLeftIsFound) {
  const auto backward = [this](LossyWatch::Loss loss) {
    const auto first = MakeStage(0);
    const auto last = MakeStage(1);
    const MicrobatchId zero(0);
    LossyWatch watch(last.get(), loss);
    last->Watch(&watch);
    EXPECT_TRUE(first->BeginStep(train_).ok());
    EXPECT_TRUE(last->BeginStep(train_).ok());
    EXPECT_TRUE(last->Collect(zero, {{2, 4}}).ok());
    EXPECT_TRUE(first->Forward(zero).ok());
    PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
    EXPECT_TRUE(last->Forward(zero).ok());
    EXPECT_TRUE(last->FreeSaved(zero, {2, 4}).ok());
    EXPECT_EQ(Used(1, MemoryKind::kActivations), Bytes(0));
    return last->Backward(zero);
  };
  EXPECT_EQ(backward(LossyWatch::Loss::kBit),
            absl::DataLossError("activations of layer 2, microbatch 0: byte 99 of 100 is not what "
                                "was saved"));
  EXPECT_EQ(backward(LossyWatch::Loss::kAll),
            absl::FailedPreconditionError("activations of layer 3, microbatch 0 are away, and "
                                          "needed now"));
}

TEST_F(SyntheticStageOfTwo, ChangedParametersAreFoundByTheStep) {
  const auto run_step = [this](StageCompute& first) {
    EXPECT_TRUE(first.BeginStep({.microbatches = std::vector<MicrobatchData>(1)}).ok());
    const auto last = MakeStage(1);
    EXPECT_TRUE(last->BeginStep({.microbatches = std::vector<MicrobatchData>(1)}).ok());
    const MicrobatchId zero(0);
    EXPECT_TRUE(first.Forward(zero).ok());
    PassOn(first, Boundary::kOutput, *last, Boundary::kInput, zero);
    EXPECT_TRUE(last->Forward(zero).ok());
    EXPECT_TRUE(last->Backward(zero).ok());
    PassOn(*last, Boundary::kInputGradient, first, Boundary::kOutputGradient, zero);
    EXPECT_TRUE(first.Backward(zero).ok());
    return first.Step({.learning_rate = 0.5});
  };
  const auto first = MakeStage(0);
  EXPECT_TRUE(run_step(*first).ok());
  const std::vector<StateTensor> state = first->State();
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[3].name, "layer1");
  ASSERT_EQ(state[3].bytes.size(), 4000u);
  state[3].bytes[3999] ^= std::byte{1};
  EXPECT_EQ(run_step(*first),
            absl::DataLossError("optimizer state of layer layer1: byte 3999 of 4000 is not what it "
                                "was left as"));
}

TEST_F(SyntheticStageOfTwo, IsHeldToTheCapacityOfItsWorker) {
  MemoryLedger small(Bytes(14 * 1000 + 150));
  const auto made = MakeSyntheticStage(profile_, EvenPartition(2, 2), StageId(0),
                                       {.ledger = &small, .clock = StandingClock(now_)});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE((*made)->BeginStep(train_).ok());
  EXPECT_EQ((*made)->Forward(MicrobatchId(0)),
            absl::ResourceExhaustedError("layer 1, microbatch 0: asked for 100 B of activations, "
                                         "but 43 B of 13.8 KiB are free"));
  MemoryLedger tiny(Bytes(13'999));
  EXPECT_THAT(MakeSyntheticStage(profile_, EvenPartition(2, 2), StageId(0),
                                 {.ledger = &tiny, .clock = StandingClock(now_)})
                  .status()
                  .message(),
              HasSubstr("layer layer1: asked for 3.91 KiB of optimizer"));
  EXPECT_EQ(tiny.used(), Bytes(0));
}

TEST_F(SyntheticStageOfTwo, RefusesStagesThatAreNotThere) {
  const SyntheticWorker worker{.ledger = &ledgers_[0], .clock = StandingClock(now_)};
  EXPECT_EQ(MakeSyntheticStage(profile_, EvenPartition(2, 2), StageId(2), worker).status(),
            absl::InvalidArgumentError("there is no stage 2 in a partition of 2"));
  EXPECT_EQ(MakeSyntheticStage(profile_, EvenPartition(3, 2), StageId(2), worker).status(),
            absl::InvalidArgumentError("stage 2 has layers [4, 6) of a profile of 4"));
}

}  // namespace
}  // namespace siphon
