#include "pipeline/torch/predictor.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/memory/tensor_bytes.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

Model MustBuild(const std::string& kind) {
  ModelOptions options = TinyGpt();
  options.kind = kind;
  options.dropout = 0.1;
  return *BuildModel(options);
}

TEST(Predictor, AgreesWithTheTrainedStageOnTheLastTokensLoss) {
  const Model model = MustBuild("gpt");
  HandRunPipeline pipeline(model, 2, 17, OptimizerOptions());
  const TokenBatch batch(model.spec, 1, 1, 5);
  StepInputs inputs = batch.Inputs(0, StepMode::kTrain);
  for (int step = 0; step < 3; ++step) {
    pipeline.Train(inputs, {.update = step + 1, .learning_rate = 1e-2});
  }
  auto predictor = Predictor::Make(model);
  ASSERT_TRUE(predictor.ok()) << predictor.status();
  const auto state = pipeline.OwnedState();
  for (const StateTensor& tensor : (*predictor)->State()) {
    const std::string& bytes = state.at(tensor.name + "/0");
    ASSERT_EQ(bytes.size(), tensor.bytes.size()) << tensor.name;
    std::memcpy(tensor.bytes.data(), bytes.data(), bytes.size());
  }
  // The loss of the whole sequence is the mean over its positions; the predictor gives each
  // position's logits.
  const auto* tokens = reinterpret_cast<const int64_t*>(inputs.microbatches[0].input.data());
  const auto* targets = reinterpret_cast<const int64_t*>(inputs.microbatches[0].target.data());
  double total = 0;
  for (size_t length = 1; length <= 8; ++length) {
    const auto logits = (*predictor)->NextTokenLogits({tokens, length});
    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_EQ(logits->size(), 32u);
    double sum = 0;
    for (const float logit : *logits) sum += std::exp(static_cast<double>(logit));
    total += std::log(sum) - (*logits)[targets[length - 1]];
  }
  inputs.mode = StepMode::kEvaluate;
  EXPECT_NEAR(pipeline.Evaluate(inputs)[0], total / 8, 1e-5);
}

TEST(Predictor, RefusesTextsThatTheModelCannotTake) {
  auto predictor = Predictor::Make(MustBuild("gpt"));
  ASSERT_TRUE(predictor.ok()) << predictor.status();
  const auto message = [&](const std::vector<int64_t>& tokens) {
    return std::string((*predictor)->NextTokenLogits(tokens).status().message());
  };
  EXPECT_EQ(message({}), "a text of 0 tokens; the model takes 1 to 8");
  EXPECT_EQ(message(std::vector<int64_t>(9, 1)), "a text of 9 tokens; the model takes 1 to 8");
  EXPECT_EQ(message({3, 32}), "token 32 is not in the vocabulary of 32");
  EXPECT_EQ(message({-1}), "token -1 is not in the vocabulary of 32");
}

TEST(Predictor, NeedsAModelOfTheNextToken) {
  const auto refused = Predictor::Make(MustBuild("bert"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("cannot continue a text"));
}

}  // namespace
}  // namespace siphon
