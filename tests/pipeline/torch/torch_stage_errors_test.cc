#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "pipeline/torch/torch_stage.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 17;

// The model of the error tests: embedding, hidden layer, output, cut into two stages.
class TorchStageErrors : public testing::Test {
 protected:
  static ModelOptions Options() {
    ModelOptions options = TinyGpt();
    options.kind = "mlp";
    options.layers = 2;
    return options;
  }

  std::unique_ptr<StageCompute> MakeStage(int stage) {
    auto made = MakeTorchStage(model_, CutEvenly(static_cast<int>(model_.spec.layers.size()), 2),
                               StageId(stage), kSeed, OptimizerOptions());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  Model model_ = *BuildModel(Options());
  TokenBatch batch_{model_.spec, 2, 2, 5};
  StepInputs train_ = batch_.Inputs(0, StepMode::kTrain);
};

TEST_F(TorchStageErrors, ForwardNeedsItsInput) {
  const auto last = MakeStage(1);
  ASSERT_TRUE(last->BeginStep(train_).ok());
  EXPECT_EQ(last->Forward(MicrobatchId(1)),
            absl::FailedPreconditionError("forward of microbatch 1 before its input was received"));
}

TEST_F(TorchStageErrors, EachPassRunsOnceAndInOrder) {
  const auto first = MakeStage(0);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  const MicrobatchId zero(0);
  EXPECT_EQ(first->Backward(zero),
            absl::FailedPreconditionError("backward of microbatch 0 before its forward pass"));
  ASSERT_TRUE(first->Forward(zero).ok());
  EXPECT_EQ(first->LiveMicrobatches(), 1);
  EXPECT_EQ(first->Forward(zero),
            absl::FailedPreconditionError("a second forward of microbatch 0 in one step"));
  EXPECT_EQ(first->Backward(zero),
            absl::FailedPreconditionError(
                "backward of microbatch 0 before the gradient of its output was received"));
  EXPECT_EQ(first->Forward(MicrobatchId(2)),
            absl::FailedPreconditionError("there is no microbatch 2 in this step of 2"));
  EXPECT_THAT(first->BeginStep(train_).message(), HasSubstr("1 microbatches of the one before"));
  ASSERT_TRUE(first->Buffers(Boundary::kOutputGradient, zero).ok());
  ASSERT_TRUE(first->Backward(zero).ok());
  EXPECT_EQ(first->LiveMicrobatches(), 0);
  EXPECT_EQ(first->Step({}), absl::FailedPreconditionError("the gradients are not complete: 1 of 2 "
                                                           "microbatches had their backward pass"));
}

TEST_F(TorchStageErrors, TheHalvesOfABackwardRunOnceAndInOrder) {
  const auto last = MakeStage(1);
  ASSERT_TRUE(last->BeginStep(train_).ok());
  const MicrobatchId zero(0);
  const auto no_input_half =
      absl::FailedPreconditionError("weight gradients of microbatch 0 before those of its input");
  EXPECT_EQ(last->BackwardWeight(zero), no_input_half);
  const auto input = last->Buffers(Boundary::kInput, zero);
  ASSERT_TRUE(input.ok()) << input.status();
  std::memset((*input)[0].data(), 0, (*input)[0].size());
  ASSERT_TRUE(last->Forward(zero).ok());
  EXPECT_EQ(last->BackwardWeight(zero), no_input_half);
  EXPECT_FALSE(last->Buffers(Boundary::kInputGradient, zero).ok());
  ASSERT_TRUE(last->BackwardInput(zero).ok());
  EXPECT_TRUE(last->Buffers(Boundary::kInputGradient, zero).ok());
  EXPECT_EQ(last->LiveMicrobatches(), 1);  // its x and dY are still held
  EXPECT_EQ(last->Backward(zero),
            absl::FailedPreconditionError("backward of microbatch 0, which has none left"));
  ASSERT_TRUE(last->BackwardWeight(zero).ok());
  EXPECT_EQ(last->LiveMicrobatches(), 0);
  EXPECT_EQ(last->BackwardWeight(zero),
            absl::FailedPreconditionError("weight gradients of microbatch 0, which has none left"));
}

TEST_F(TorchStageErrors, BoundariesExistOnlyWhereAndWhenTheyMakeSense) {
  const auto first = MakeStage(0);
  const auto last = MakeStage(1);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  ASSERT_TRUE(last->BeginStep(train_).ok());
  const MicrobatchId zero(0);
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_EQ(message(first->Buffers(Boundary::kInput, zero)),
            "the input of microbatch 0 does not exist: this is the first stage");
  EXPECT_EQ(message(last->Buffers(Boundary::kOutput, zero)),
            "the output of microbatch 0 does not exist: this is the last stage");
  EXPECT_EQ(message(first->Buffers(Boundary::kOutput, zero)),
            "the output of microbatch 0 is not there: not made yet, or released");
  ASSERT_TRUE(first->Forward(zero).ok());
  const auto output = first->Buffers(Boundary::kOutput, zero);
  ASSERT_TRUE(output.ok()) << output.status();
  ASSERT_EQ(output->size(), 1u);
  EXPECT_EQ((*output)[0].size(), 2u * 8u * 16u * sizeof(float));
  EXPECT_TRUE(IsAligned((*output)[0].data()));
  EXPECT_TRUE(first->Release(Boundary::kOutput, zero).ok());
  EXPECT_FALSE(first->Release(Boundary::kOutput, zero).ok());
  EXPECT_FALSE(last->Release(Boundary::kInput, zero).ok());
  ASSERT_TRUE(last->BeginStep(batch_.Inputs(0, StepMode::kEvaluate)).ok());
  EXPECT_EQ(message(last->Buffers(Boundary::kInputGradient, zero)),
            "the gradient of the input of microbatch 0 does not exist in an evaluation");
}

TEST_F(TorchStageErrors, DataMustFitTheModel) {
  const auto first = MakeStage(0);
  StepInputs wrong = train_;
  wrong.microbatches[1].input_spec.shape = {2, 7};
  EXPECT_EQ(first->BeginStep(wrong),
            absl::InvalidArgumentError(
                "microbatch 1: the input is I64[2, 7]; the model takes I64[8] a sample"));
  wrong = train_;
  wrong.microbatches[0].input = wrong.microbatches[0].input.subspan(8);
  EXPECT_EQ(first->BeginStep(wrong),
            absl::InvalidArgumentError("microbatch 0: the input has 120 bytes at address modulo 64 "
                                       "= 8; it should have 128 bytes at 0"));
  wrong = train_;
  wrong.target_count = 0;
  EXPECT_FALSE(first->BeginStep(wrong).ok());
}

TEST_F(TorchStageErrors, ALayerMustProduceWhatItDeclared) {
  model_.forward[1] = [](LayerContext&, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0].narrow(2, 0, 4)};
  };
  const auto first = MakeStage(0);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  EXPECT_EQ(first->Forward(MicrobatchId(1)),
            absl::InvalidArgumentError(absl::StrCat(
                "layer ", model_.spec.layers[1].name, ", microbatch 1: layer ",
                model_.spec.layers[1].name,
                " declared F32[8, 16] a sample and produced F32[2, 8, 4] for 2 samples")));
}

TEST_F(TorchStageErrors, ALayerThatThrowsIsNamed) {
  model_.forward[1] = [](LayerContext&, const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
    throw std::runtime_error("no convolution today");
  };
  const auto first = MakeStage(0);
  ASSERT_TRUE(first->BeginStep(train_).ok());
  EXPECT_EQ(first->Forward(MicrobatchId(0)),
            absl::InternalError(absl::StrCat("layer ", model_.spec.layers[1].name,
                                             ", microbatch 0: LibTorch: forward: no convolution "
                                             "today")));
}

TEST_F(TorchStageErrors, LogitsMustFitTheTargets) {
  model_.forward.back() = [](LayerContext&, const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0]};
  };
  const auto last = MakeStage(1);
  ASSERT_TRUE(last->BeginStep(train_).ok());
  ASSERT_TRUE(last->Buffers(Boundary::kInput, MicrobatchId(0)).ok());
  EXPECT_THAT(last->Forward(MicrobatchId(0)).message(),
              HasSubstr("the last layer produced F32[2, 8, 16]; the logits of 16 targets in 32 "
                        "classes should be F32[..., 32] of 512 elements"));
}

TEST_F(TorchStageErrors, UnknownOptimizersAreNamedWithTheKnownOnes) {
  OptimizerOptions options;
  options.name = "adamax";
  const auto made = MakeTorchStage(model_, CutEvenly(4, 2), StageId(0), kSeed, options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(made.status().message(), HasSubstr("unknown optimizer 'adamax'; known: "));
  for (const std::string& known : KnownOptimizers()) {
    EXPECT_THAT(made.status().message(), HasSubstr(known));
    options.name = known;
    EXPECT_TRUE(MakeTorchStage(model_, CutEvenly(4, 2), StageId(0), kSeed, options).ok());
  }
}

TEST_F(TorchStageErrors, GradientsOfSharedParametersMustBeAddedFirst) {
  const Model tied = *BuildModel(TinyGpt());
  const auto first = MakeTorchStage(tied, CutEvenly(4, 2), StageId(0), kSeed, OptimizerOptions());
  ASSERT_TRUE(first.ok()) << first.status();
  const TokenBatch batch(tied.spec, 1, 1, 5);
  ASSERT_TRUE((*first)->BeginStep(batch.Inputs(0, StepMode::kTrain)).ok());
  const MicrobatchId zero(0);
  ASSERT_TRUE((*first)->Forward(zero).ok());
  const auto gradient = (*first)->Buffers(Boundary::kOutputGradient, zero);
  ASSERT_TRUE(gradient.ok());
  std::memset((*gradient)[0].data(), 0, (*gradient)[0].size());
  ASSERT_TRUE((*first)->Backward(zero).ok());
  EXPECT_THAT((*first)->GradientNorms().status().message(),
              HasSubstr("transformer.wte.weight, which several stages use, have to be added"));
  EXPECT_THAT((*first)->AddSharedGradients().message(), HasSubstr("in layer 3 is not there"));
  const auto shared = (*first)->SharedGradients();
  ASSERT_TRUE(shared.ok());
  ASSERT_EQ(shared->size(), 2u);
  EXPECT_EQ((*shared)[0].layer, 0);
  EXPECT_EQ((*shared)[1].layer, 3);
  std::memset((*shared)[1].bytes.data(), 0, (*shared)[1].bytes.size());
  ASSERT_TRUE((*first)->AddSharedGradients().ok());
  EXPECT_FALSE((*first)->AddSharedGradients().ok());
  EXPECT_TRUE((*first)->GradientNorms().ok());
}

}  // namespace
}  // namespace siphon
