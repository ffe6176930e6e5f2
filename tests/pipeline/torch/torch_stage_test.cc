#include "pipeline/torch/torch_stage.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/tensor_bytes.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 17;

Model MustBuild(const ModelOptions& options) {
  absl::StatusOr<Model> model = BuildModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

OptimizerOptions AdamWWithDecay() {
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay = 0.1;
  return options;
}

struct Trained {
  std::vector<HandRunPipeline::Result> steps;
  std::vector<float> evaluation;
  std::map<std::string, std::string> state;
};

// What happens to activations between forward and backward.
enum class Leaving { kDropped, kParked, kInTurns };

Trained TrainThreeSteps(const ModelOptions& options, int stages,
                        HandRunPipeline::Backward backward = HandRunPipeline::Backward::kWhole,
                        int run = 0, Leaving leaving = Leaving::kDropped) {
  const Model model = MustBuild(options);
  HandRunPipeline pipeline(model, stages, kSeed, AdamWWithDecay());
  if (leaving != Leaving::kParked) pipeline.DropInRunsOf(run);
  if (leaving != Leaving::kDropped) pipeline.ParkInRunsOf(run);
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    const TokenBatch batch(model.spec, /*microbatches=*/4, /*samples=*/2, /*seed=*/100 + step);
    trained.steps.push_back(pipeline.Train(
        batch.Inputs(step, StepMode::kTrain),
        {.update = step + 1, .learning_rate = 1e-2, .gradient_scale = 0.7f}, backward));
  }
  const TokenBatch batch(model.spec, 2, 2, 5);
  trained.evaluation = pipeline.Evaluate(batch.Inputs(3, StepMode::kEvaluate));
  trained.state = pipeline.OwnedState();
  for (const auto& [name, bytes] : pipeline.CopiedState()) {
    EXPECT_TRUE(trained.state[name] == bytes) << name << ": a tied copy has other bits";
  }
  return trained;
}

struct CutCase {
  std::string name;
  ModelOptions options;
};

std::vector<CutCase> CutCases() {
  ModelOptions tied = TinyGpt();
  tied.dropout = 0.1;
  ModelOptions untied = TinyGpt();
  untied.tie_embeddings = false;
  ModelOptions written_out = TinyGpt();
  written_out.flash_attention = false;
  ModelOptions bert = TinyGpt();
  bert.kind = "bert";
  bert.dropout = 0.1;
  ModelOptions mlp = TinyGpt();
  mlp.kind = "mlp";
  mlp.dropout = 0.2;
  return {{"TiedGptWithDropout", tied},
          {"UntiedGpt", untied},
          {"WrittenOutAttention", written_out},
          {"Bert", bert},
          {"Mlp", mlp}};
}

class StageCuts : public testing::TestWithParam<CutCase> {};

TEST_P(StageCuts, ChangeNoBitOfLossesNormsAndParameters) {
  const Trained whole = TrainThreeSteps(GetParam().options, 1);
  ASSERT_EQ(whole.steps[0].losses.size(), 4u);
  EXPECT_NE(whole.steps[0].losses, whole.steps[1].losses);
  for (int stages = 2; stages <= 4; ++stages) {
    const Trained cut = TrainThreeSteps(GetParam().options, stages);
    EXPECT_TRUE(cut.steps == whole.steps) << stages << " stages: losses or norms differ";
    EXPECT_EQ(cut.evaluation, whole.evaluation) << stages << " stages";
    EXPECT_EQ(cut.state.size(), whole.state.size());
    for (const auto& [name, bytes] : whole.state) {
      ASSERT_TRUE(cut.state.contains(name)) << name;
      EXPECT_TRUE(cut.state.at(name) == bytes) << stages << " stages: " << name << " differs";
    }
  }
}

TEST_P(StageCuts, BackwardInTwoHalvesChangesNoBitEither) {
  const Trained whole = TrainThreeSteps(GetParam().options, 1);
  for (const int stages : {1, 3}) {
    const Trained halved =
        TrainThreeSteps(GetParam().options, stages, HandRunPipeline::Backward::kHalves);
    EXPECT_TRUE(halved.steps == whole.steps) << stages << " stages: losses or norms differ";
    EXPECT_TRUE(halved.state == whole.state) << stages << " stages: the state differs";
  }
}

TEST_P(StageCuts, DroppingActivationsChangesNoBit) {
  const Trained whole = TrainThreeSteps(GetParam().options, 1);
  for (const int stages : {1, 2}) {
    for (const int run : {1, 2, 4}) {
      for (const auto backward :
           {HandRunPipeline::Backward::kWhole, HandRunPipeline::Backward::kHalves}) {
        const Trained dropped = TrainThreeSteps(GetParam().options, stages, backward, run);
        EXPECT_TRUE(dropped.steps == whole.steps) << stages << " stages, runs of " << run;
        EXPECT_TRUE(dropped.state == whole.state) << stages << " stages, runs of " << run;
        EXPECT_EQ(dropped.evaluation, whole.evaluation);
      }
    }
  }
}

TEST_P(StageCuts, ParkingActivationsElsewhereChangesNoBit) {
  const Trained whole = TrainThreeSteps(GetParam().options, 1);
  for (const int stages : {1, 2}) {
    for (const int run : {1, 2, 4}) {
      for (const auto leaving : {Leaving::kParked, Leaving::kInTurns}) {
        for (const auto backward :
             {HandRunPipeline::Backward::kWhole, HandRunPipeline::Backward::kHalves}) {
          const Trained parked =
              TrainThreeSteps(GetParam().options, stages, backward, run, leaving);
          EXPECT_TRUE(parked.steps == whole.steps) << stages << " stages, runs of " << run;
          EXPECT_TRUE(parked.state == whole.state) << stages << " stages, runs of " << run;
          EXPECT_EQ(parked.evaluation, whole.evaluation);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StageCuts, testing::ValuesIn(CutCases()),
                         [](const auto& info) { return info.param.name; });

TEST(TorchStage, LearnsARepeatedBatch) {
  const Model model = MustBuild(TinyGpt());
  HandRunPipeline pipeline(model, 2, kSeed, AdamWWithDecay());
  const TokenBatch batch(model.spec, 2, 2, 5);
  const auto total = [](const std::vector<float>& losses) { return losses[0] + losses[1]; };
  const float first =
      total(pipeline.Train(batch.Inputs(0, StepMode::kTrain), {.update = 1, .learning_rate = 1e-2})
                .losses);
  EXPECT_NEAR(first, std::log(32.0f), 0.1f);  // nothing is known yet: 32 tokens, equally likely
  for (int step = 1; step < 20; ++step) {
    pipeline.Train(batch.Inputs(step, StepMode::kTrain),
                   {.update = step + 1, .learning_rate = 1e-2});
  }
  EXPECT_LT(total(pipeline.Evaluate(batch.Inputs(20, StepMode::kEvaluate))), 0.7f * first);
}

TEST(TorchStage, DropoutDependsOnTheStepAndIsOffInEvaluation) {
  ModelOptions options = TinyGpt();
  options.dropout = 0.3;
  const Model model = MustBuild(options);
  HandRunPipeline pipeline(model, 1, kSeed, AdamWWithDecay());
  const TokenBatch batch(model.spec, 1, 2, 5);
  const UpdateSettings no_update = {.update = 1, .learning_rate = 0};
  const auto loss_at = [&](int64_t step) {
    return pipeline.Train(batch.Inputs(step, StepMode::kTrain), no_update).losses[0];
  };
  const float first = loss_at(0);
  EXPECT_NE(loss_at(1), first);
  EXPECT_EQ(loss_at(0), first);
  const float evaluated = pipeline.Evaluate(batch.Inputs(0, StepMode::kEvaluate))[0];
  EXPECT_EQ(pipeline.Evaluate(batch.Inputs(9, StepMode::kEvaluate))[0], evaluated);
}

TEST(TorchStage, GradientsAreThoseOfFiniteDifferences) {
  ModelOptions options = TinyGpt();
  options.dropout = 0.2;  // the masks are the same in every call: same step
  const Model model = MustBuild(options);
  OptimizerOptions sgd;
  sgd.name = "sgd";
  const TokenBatch batch(model.spec, 2, 2, 5);
  const StepInputs inputs = batch.Inputs(0, StepMode::kTrain);
  const auto total_loss = [&](HandRunPipeline& pipeline, double learning_rate) {
    const auto losses =
        pipeline.Train(inputs, {.update = 1, .learning_rate = learning_rate}).losses;
    return static_cast<double>(losses[0]) + losses[1];
  };
  // One step of gradient descent changes the loss by -rate * |gradient|^2 (to first order), so the
  // norms and the direction are right together.
  HandRunPipeline pipeline(model, 2, kSeed, sgd);
  const auto before = pipeline.Train(inputs, {.update = 1, .learning_rate = 0});
  double squares = 0;
  for (const float norm : before.norms) squares += static_cast<double>(norm) * norm;
  const double rate = 1e-2 / squares;
  const double first = total_loss(pipeline, rate);
  const double second = total_loss(pipeline, 0);
  EXPECT_NEAR((first - second) / (rate * squares), 1.0, 0.05);
}

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

  Model model_ = MustBuild(Options());
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
  const Model tied = MustBuild(TinyGpt());
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
