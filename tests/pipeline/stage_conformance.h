#ifndef SIPHON_TESTS_PIPELINE_STAGE_CONFORMANCE_H_
#define SIPHON_TESTS_PIPELINE_STAGE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage_compute.h"

// What every StageCompute answers to calls in an impossible order, whatever it computes with.

namespace siphon {

// Two stages of two layers each, and data of two microbatches.
struct StageWorld {
  std::function<std::unique_ptr<StageCompute>(int stage)> make;
  StepInputs train;
  StepInputs evaluate;
};

// Hands what `from` has made to `to`.
inline void PassOn(StageCompute& from, Boundary made, StageCompute& to, Boundary taken,
                   MicrobatchId microbatch) {
  const absl::StatusOr<TensorSpans> source = from.Buffers(made, microbatch);
  const absl::StatusOr<TensorSpans> target = to.Buffers(taken, microbatch);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(target.ok()) << target.status();
  ASSERT_EQ(source->size(), target->size());
  for (size_t part = 0; part < source->size(); ++part) {
    ASSERT_EQ((*source)[part].size(), (*target)[part].size());
    std::memcpy((*target)[part].data(), (*source)[part].data(), (*source)[part].size());
  }
}

inline std::string Refusal(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  return std::string(status.message());
}

inline void ExpectPassesRunOnceAndInOrder(const StageWorld& world) {
  const auto first = world.make(0);
  const auto last = world.make(1);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(world.train).ok());
  ASSERT_TRUE(last->BeginStep(world.train).ok());
  EXPECT_EQ(Refusal(last->Forward(MicrobatchId(1))),
            "forward of microbatch 1 before its input was received");
  EXPECT_EQ(Refusal(first->Backward(zero)), "backward of microbatch 0 before its forward pass");
  ASSERT_TRUE(first->Forward(zero).ok());
  EXPECT_EQ(first->LiveMicrobatches(), 1);
  EXPECT_EQ(Refusal(first->Forward(zero)), "a second forward of microbatch 0 in one step");
  EXPECT_EQ(Refusal(first->Backward(zero)),
            "backward of microbatch 0 before the gradient of its output was received");
  EXPECT_EQ(Refusal(first->Forward(MicrobatchId(2))), "there is no microbatch 2 in this step of 2");
  EXPECT_EQ(Refusal(first->BeginStep(world.train)),
            "a step cannot begin while 1 microbatches of the one before await their backward pass");
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  ASSERT_TRUE(last->Forward(zero).ok());
  ASSERT_TRUE(last->Backward(zero).ok());
  PassOn(*last, Boundary::kInputGradient, *first, Boundary::kOutputGradient, zero);
  ASSERT_TRUE(first->Backward(zero).ok());
  EXPECT_EQ(first->LiveMicrobatches(), 0);
  EXPECT_EQ(Refusal(first->Backward(zero)), "backward of microbatch 0, which has none left");
  EXPECT_EQ(Refusal(first->Step({})),
            "the gradients are not complete: 1 of 2 microbatches had their backward pass");
  EXPECT_EQ(Refusal(first->GradientNorms().status()),
            "the gradients are not complete: 1 of 2 microbatches had their backward pass");
}

inline void ExpectHalvesRunOnceAndInOrder(const StageWorld& world) {
  const auto first = world.make(0);
  const auto last = world.make(1);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(world.train).ok());
  ASSERT_TRUE(last->BeginStep(world.train).ok());
  const std::string no_input_half = "weight gradients of microbatch 0 before those of its input";
  EXPECT_EQ(Refusal(last->BackwardWeight(zero)), no_input_half);
  ASSERT_TRUE(first->Forward(zero).ok());
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  ASSERT_TRUE(last->Forward(zero).ok());
  EXPECT_EQ(Refusal(last->BackwardWeight(zero)), no_input_half);
  EXPECT_FALSE(last->Buffers(Boundary::kInputGradient, zero).ok());
  ASSERT_TRUE(last->BackwardInput(zero).ok());
  EXPECT_TRUE(last->Buffers(Boundary::kInputGradient, zero).ok());
  EXPECT_EQ(last->LiveMicrobatches(), 1);
  EXPECT_EQ(Refusal(last->Backward(zero)), "backward of microbatch 0, which has none left");
  ASSERT_TRUE(last->BackwardWeight(zero).ok());
  EXPECT_EQ(last->LiveMicrobatches(), 0);
  EXPECT_EQ(Refusal(last->BackwardWeight(zero)),
            "weight gradients of microbatch 0, which has none left");
}

inline void ExpectBoundariesExistWhereTheyMakeSense(const StageWorld& world) {
  const auto first = world.make(0);
  const auto last = world.make(1);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(world.train).ok());
  ASSERT_TRUE(last->BeginStep(world.train).ok());
  const auto refusal = [&](StageCompute& stage, Boundary boundary) {
    return Refusal(stage.Buffers(boundary, zero).status());
  };
  EXPECT_EQ(refusal(*first, Boundary::kInput),
            "the input of microbatch 0 does not exist: this is the first stage");
  EXPECT_EQ(refusal(*last, Boundary::kOutput),
            "the output of microbatch 0 does not exist: this is the last stage");
  EXPECT_EQ(refusal(*first, Boundary::kOutput),
            "the output of microbatch 0 is not there: not made yet, or released");
  ASSERT_TRUE(first->Forward(zero).ok());
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  EXPECT_TRUE(first->Release(Boundary::kOutput, zero).ok());
  EXPECT_EQ(Refusal(first->Release(Boundary::kOutput, zero)),
            "the output of microbatch 0 is not there: not made yet, or released");
  EXPECT_EQ(Refusal(last->Release(Boundary::kInput, zero)),
            "the input of microbatch 0 is not released: its pass takes it over");
  ASSERT_TRUE(last->Forward(zero).ok());
  EXPECT_EQ(refusal(*last, Boundary::kInput),
            "the input of microbatch 0 was taken over by its forward pass");
  ASSERT_TRUE(last->Backward(zero).ok());
  PassOn(*last, Boundary::kInputGradient, *first, Boundary::kOutputGradient, zero);
  ASSERT_TRUE(first->Backward(zero).ok());
  EXPECT_EQ(refusal(*first, Boundary::kOutputGradient),
            "the gradient of the output of microbatch 0 was taken over by its backward pass");
  ASSERT_TRUE(last->BeginStep(world.evaluate).ok());
  EXPECT_EQ(refusal(*last, Boundary::kInputGradient),
            "the gradient of the input of microbatch 0 does not exist in an evaluation");
  EXPECT_EQ(Refusal(last->GradientNorms().status()), "an evaluation has no gradients");
}

inline void ExpectDroppedLayersComeBackOnce(const StageWorld& world) {
  const auto first = world.make(0);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(world.train).ok());
  EXPECT_EQ(Refusal(first->Recompute(zero, {0, 2})),
            "activations of microbatch 0 are computed again between its forward and its backward "
            "pass");
  ASSERT_TRUE(first->Drop(zero, {{0, 2}}).ok());
  EXPECT_EQ(Refusal(first->Drop(zero, {{1, 2}})), "layers [1, 2) were dropped already");
  EXPECT_EQ(first->Drop(MicrobatchId(1), {{1, 3}}),
            absl::InvalidArgumentError("layers [1, 3) are not of this stage, which has [0, 2)"));
  EXPECT_EQ(Refusal(first->Collect(zero, {{1, 2}})), "layers [1, 2) were dropped already");
  ASSERT_TRUE(first->Forward(zero).ok());
  EXPECT_EQ(Refusal(first->Drop(zero, {{0, 1}})),
            "activations of microbatch 0 are dropped before its forward pass");
  EXPECT_EQ(Refusal(first->Recompute(zero, {0, 1})),
            "layers [0, 1) of microbatch 0 were not dropped");
  ASSERT_TRUE(first->Recompute(zero, {0, 2}).ok());
  EXPECT_EQ(Refusal(first->Recompute(zero, {0, 2})),
            "layers [0, 2) of microbatch 0 were not dropped");
  const auto evaluating = world.make(0);
  ASSERT_TRUE(evaluating->BeginStep(world.evaluate).ok());
  EXPECT_EQ(Refusal(evaluating->Drop(zero, {{0, 2}})),
            "activations of microbatch 0 are dropped in training only");
}

// A watch that copies what layers save, and brings that back when they need it.
class ParkingWatch : public PassWatch {
 public:
  explicit ParkingWatch(StageCompute* stage) : stage_(stage) {}
  absl::Status Enter(int) override { return absl::OkStatus(); }
  absl::Status Leave(int) override { return absl::OkStatus(); }
  absl::Status BeginRecompute(MicrobatchId, StageRange) override { return absl::OkStatus(); }
  void EndRecompute() override {}
  absl::Status Saved(MicrobatchId microbatch, StageRange layers) override {
    const absl::StatusOr<TensorSpans> tensors = stage_->SavedTensors(microbatch, layers);
    if (!tensors.ok()) return tensors.status();
    for (const auto& tensor : *tensors) parked_.emplace_back(tensor.begin(), tensor.end());
    return absl::OkStatus();
  }
  absl::Status Need(MicrobatchId microbatch, StageRange layers) override {
    ++needed_;
    const absl::StatusOr<TensorSpans> tensors = stage_->RefillSaved(microbatch, layers);
    if (!tensors.ok()) return tensors.status();
    for (size_t index = 0; index < tensors->size(); ++index) {
      EXPECT_TRUE((*tensors)[index].empty() || (*tensors)[index].size() == parked_[index].size());
      std::copy_n(parked_[index].begin(), (*tensors)[index].size(), (*tensors)[index].begin());
    }
    return absl::OkStatus();
  }
  const std::vector<std::vector<std::byte>>& parked() const { return parked_; }
  int needed() const { return needed_; }

 private:
  StageCompute* const stage_;
  std::vector<std::vector<std::byte>> parked_;
  int needed_ = 0;
};

inline void ExpectCollectedLayersMayBeAway(const StageWorld& world) {
  const auto first = world.make(0);
  const auto last = world.make(1);
  const MicrobatchId zero(0);
  ASSERT_TRUE(first->BeginStep(world.train).ok());
  ASSERT_TRUE(last->BeginStep(world.train).ok());
  EXPECT_EQ(Refusal(first->SavedTensors(zero, {0, 2}).status()),
            "layers [0, 2) were not collected by a forward pass");
  ASSERT_TRUE(first->Collect(zero, {{0, 2}}).ok());
  EXPECT_EQ(Refusal(first->Collect(zero, {{1, 2}})),
            "layers [1, 2) are collected already, as layers [0, 2)");
  EXPECT_EQ(Refusal(first->Drop(zero, {{0, 1}})),
            "layers [0, 1) are collected already, as layers [0, 2)");
  EXPECT_EQ(Refusal(first->RefillSaved(zero, {0, 2}).status()),
            "activations of microbatch 0 are brought back between its forward and its backward "
            "pass");
  EXPECT_EQ(Refusal(first->FreeSaved(zero, {0, 2})),
            "layers [0, 2) were not collected by a forward pass");
  ParkingWatch watch(first.get());
  first->Watch(&watch);
  ASSERT_TRUE(first->Forward(zero).ok());
  EXPECT_FALSE(watch.parked().empty());
  EXPECT_EQ(watch.needed(), 0);
  EXPECT_EQ(Refusal(first->FreeSaved(zero, {0, 1})),
            "layers [0, 1) were not collected by a forward pass");
  ASSERT_TRUE(first->FreeSaved(zero, {0, 2}).ok());
  EXPECT_EQ(Refusal(first->Collect(zero, {{0, 2}})),
            "activations of microbatch 0 are collected before its forward pass");
  PassOn(*first, Boundary::kOutput, *last, Boundary::kInput, zero);
  ASSERT_TRUE(last->Forward(zero).ok());
  ASSERT_TRUE(last->Backward(zero).ok());
  PassOn(*last, Boundary::kInputGradient, *first, Boundary::kOutputGradient, zero);
  ASSERT_TRUE(first->Release(Boundary::kOutput, zero).ok());
  ASSERT_TRUE(first->Backward(zero).ok());
  EXPECT_EQ(watch.needed(), 1);
  first->Watch(nullptr);
}

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_STAGE_CONFORMANCE_H_
