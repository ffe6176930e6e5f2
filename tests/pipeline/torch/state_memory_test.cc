// Training state of LibTorch stages whose memory is freed and taken again.

#include "pipeline/state_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/torch/torch_stage.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 5;

// One stage that holds the whole of a gpt of one block, tied.
class FreedState : public testing::Test {
 protected:
  static ModelOptions Options() {
    ModelOptions options = TinyGpt();
    options.layers = 1;
    return options;
  }
  std::unique_ptr<StageCompute> MakeStage(const std::vector<StateGroup>& away) {
    auto made = MakeTorchStage(model_, {.stages = {{0, layers_}}}, StageId(0), kSeed,
                               OptimizerOptions(), away);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static std::vector<std::string> BytesOf(StageCompute& stage) {
    std::vector<std::string> bytes;
    for (const StateTensor& tensor : stage.State()) {
      bytes.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    return bytes;
  }
  StateGroup All(GroupKind kind) const { return {kind, {0, layers_}}; }

  const Model model_ = BuildModel(Options()).value();
  const int layers_ = static_cast<int>(model_.spec.layers.size());
  const TokenBatch batch_{model_.spec, 1, 2, 5};
  const StepInputs train_ = batch_.Inputs(0, StepMode::kTrain);
};

TEST_F(FreedState, BeginsAsIfItHadBeenThere) {
  const std::vector<std::string> expected = BytesOf(*MakeStage({}));
  const std::vector<StateGroup> away = {All(GroupKind::kParameters), All(GroupKind::kGradients),
                                        All(GroupKind::kOptimizerState)};
  const auto stage = MakeStage(away);
  int freed = 0;
  for (const StateTensor& tensor : stage->State()) freed += tensor.bytes.empty() ? 1 : 0;
  EXPECT_GT(freed, 0);
  for (const StateGroup& group : away) {
    const auto taken = stage->state_memory().Refill(group);
    ASSERT_TRUE(taken.ok()) << taken.status();
    for (const absl::Span<std::byte> memory : *taken) EXPECT_FALSE(memory.empty());
    ASSERT_TRUE(stage->state_memory().Initialise(group).ok());
  }
  EXPECT_EQ(BytesOf(*stage), expected);
}

// The embedding, which the head uses too, stays; its moments are the first layer's.
TEST_F(FreedState, LeavesWhatSeveralLayersUse) {
  const auto stage = MakeStage({{GroupKind::kParameters, {0, 1}}});
  std::vector<std::string> freed;
  for (const StateTensor& tensor : stage->State()) {
    if (tensor.bytes.empty()) freed.push_back(tensor.name);
  }
  EXPECT_EQ(freed, std::vector<std::string>{"transformer.wpe.weight"});
  const auto moments = stage->state_memory().Tensors({GroupKind::kOptimizerState, {0, 1}});
  ASSERT_TRUE(moments.ok()) << moments.status();
  EXPECT_EQ(moments->size(), 4u) << "two each of tokens and positions";
  const auto of_head =
      stage->state_memory().Tensors({GroupKind::kParameters, {layers_ - 1, layers_}});
  ASSERT_TRUE(of_head.ok()) << of_head.status();
  for (const StateTensor& tensor : stage->State()) {
    if (tensor.name != "transformer.wte.weight") continue;
    for (const absl::Span<std::byte> memory : *of_head) {
      EXPECT_NE(memory.data(), tensor.bytes.data());
    }
  }
}

TEST_F(FreedState, IsNamedWhereAPassNeedsIt) {
  const MicrobatchId zero(0);
  const auto forward = MakeStage({{GroupKind::kParameters, {1, 2}}});
  ASSERT_TRUE(forward->BeginStep(train_).ok());
  const absl::Status refused = forward->Forward(zero);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("microbatch 0: the value of transformer.h.0."));
  EXPECT_THAT(refused.message(), HasSubstr("is needed while it is away"));

  const auto backward = MakeStage({{GroupKind::kGradients, {1, 2}}});
  ASSERT_TRUE(backward->BeginStep(train_).ok());
  ASSERT_TRUE(backward->Forward(zero).ok());
  EXPECT_THAT(backward->Backward(zero).message(), HasSubstr("the gradient of transformer.h.0."));

  const auto step = MakeStage({{GroupKind::kOptimizerState, {1, 2}}});
  const std::vector<std::string> before = BytesOf(*step);
  ASSERT_TRUE(step->BeginStep(train_).ok());
  ASSERT_TRUE(step->Forward(zero).ok());
  ASSERT_TRUE(step->Backward(zero).ok());
  EXPECT_THAT(step->Step({}).message(), HasSubstr("the optimizer state of transformer.h.0."));
  EXPECT_EQ(BytesOf(*step), before) << "nothing is updated where something is away";
}

// Norms are those of the complete gradients, which may be gone by then.
TEST_F(FreedState, NormsNeedNoGradientsOfOneLayer) {
  std::vector<std::vector<float>> norms;
  for (const bool away : {false, true}) {
    const auto stage = MakeStage({});
    ASSERT_TRUE(stage->BeginStep(train_).ok());
    ASSERT_TRUE(stage->Forward(MicrobatchId(0)).ok());
    ASSERT_TRUE(stage->Backward(MicrobatchId(0)).ok());
    if (away) {
      ASSERT_TRUE(stage->state_memory().Free(All(GroupKind::kGradients)).ok());
    }
    const auto found = stage->GradientNorms();
    ASSERT_TRUE(found.ok()) << found.status();
    norms.push_back(*found);
  }
  EXPECT_EQ(norms[0], norms[1]);
}

// Layer by layer, in any order, and the rest at once.
TEST_F(FreedState, StepsByLayersAsAWhole) {
  std::vector<std::vector<std::string>> results;
  for (const bool parts : {false, true}) {
    const auto stage = MakeStage({});
    ASSERT_TRUE(stage->BeginStep(train_).ok());
    ASSERT_TRUE(stage->Forward(MicrobatchId(0)).ok());
    ASSERT_TRUE(stage->Backward(MicrobatchId(0)).ok());
    const UpdateSettings settings{.update = 1, .learning_rate = 0.1};
    if (parts) {
      ASSERT_TRUE(stage->StepLayers(settings, {1, 2}).ok());
      ASSERT_TRUE(stage->StepLayers(settings, {0, 1}).ok());
    }
    ASSERT_TRUE(stage->Step(settings).ok());
    results.push_back(BytesOf(*stage));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace siphon
