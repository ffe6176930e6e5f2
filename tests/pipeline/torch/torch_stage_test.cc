#include "pipeline/torch/torch_stage.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

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

}  // namespace
}  // namespace siphon
