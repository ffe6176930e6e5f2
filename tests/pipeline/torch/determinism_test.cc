#include "pipeline/torch/determinism.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/layers.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

// The setting is the process's.
class DeterminismSetting : public testing::Test {
 protected:
  void TearDown() override { SetDeterminism(Determinism::kNotRequired); }
};

// LibTorch knows no deterministic way of it, on any device: elements may be written twice.
at::Tensor PutFirst(const at::Tensor& x) {
  return x.clone().put_(at::zeros({1}, at::kLong), at::ones({1}), /*accumulate=*/false);
}

// A gpt whose second layer does something before its own.
Model GptThat(at::Tensor (*does)(const at::Tensor&)) {
  Model model = *BuildModel(TinyGpt());
  const LayerForward block = model.forward[1];
  model.forward[1] = [block, does](LayerContext& context, const std::vector<at::Tensor>& inputs) {
    return block(context, {does(inputs[0])});
  };
  return model;
}

absl::Status ForwardOf(const Model& model) {
  const TokenBatch batch(model.spec, 1, 2, 3);
  const int layers = static_cast<int>(model.spec.layers.size());
  auto stage = MakeTorchStage(model, CutEvenly(layers, 1), StageId(0), 7, {});
  if (!stage.ok()) return stage.status();
  const absl::Status begun = (*stage)->BeginStep(batch.Inputs(0, StepMode::kTrain));
  return begun.ok() ? (*stage)->Forward(MicrobatchId(0)) : begun;
}

TEST_F(DeterminismSetting, RefusesALayerByNameThatHasNoDeterministicAlgorithm) {
  SetDeterminism(Determinism::kRequired);
  const absl::Status refused = ForwardOf(GptThat(PutFirst));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "layer transformer.h.0, microbatch 0: forward: put_ has no deterministic algorithm; "
            "compute it another way, or write train.deterministic: false, and two runs may differ");
}

TEST_F(DeterminismSetting, LetsItRunWhereThatIsNotRequired) {
  EXPECT_EQ(ForwardOf(GptThat(PutFirst)), absl::OkStatus());
  SetDeterminism(Determinism::kRequired);
  SetDeterminism(Determinism::kNotRequired);
  EXPECT_EQ(ForwardOf(GptThat(PutFirst)), absl::OkStatus());
}

TEST_F(DeterminismSetting, ChangesNoBitOfWhatTheBuiltInLayersCompute) {
  ModelOptions options = TinyGpt();
  const auto train = [&] {
    const Model model = *BuildModel(options);
    HandRunPipeline pipeline(model, 2, 7, {});
    const TokenBatch batch(model.spec, 2, 2, 3);
    pipeline.Train(batch.Inputs(0, StepMode::kTrain), {.update = 1, .learning_rate = 0.1});
    return pipeline.OwnedState();
  };
  const auto free = train();
  SetDeterminism(Determinism::kRequired);
  EXPECT_EQ(train(), free);
}

// New memory is not filled, which would be a pass over all of it.
TEST_F(DeterminismSetting, DoesNotFillWhatIsNotWritten) {
  SetDeterminism(Determinism::kRequired);
  EXPECT_FALSE(at::globalContext().deterministicFillUninitializedMemory());
}

TEST(OperatorWithoutDeterminism, IsWhoRefused) {
  EXPECT_EQ(OperatorWithoutDeterminism("expected 3 arguments"), std::nullopt);
  EXPECT_EQ(OperatorWithoutDeterminism("first line\nadaptive_avg_pool2d_backward_cuda does not "
                                       "have a deterministic implementation, but you set"),
            "adaptive_avg_pool2d_backward_cuda");
}

}  // namespace
}  // namespace siphon
