#include "pipeline/torch/layers.h"

#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/torch/graphs/layer_graph.h"
#include "pipeline/torch/keyed_random.h"
#include "pipeline/torch/kinds/layer_parts.h"
#include "tests/pipeline/torch/stage_harness.h"

namespace siphon {
namespace {

LayerContext Evaluating(const std::vector<at::Tensor>& parameters) {
  return LayerContext(&parameters, {}, /*training=*/false);
}

// Numbers that are neither symmetric nor all alike.
at::Tensor Wavy(at::IntArrayRef shape, double phase) {
  at::Tensor x = at::empty(shape, at::kFloat);
  for (int64_t index = 0; index < x.numel(); ++index) {
    x.mutable_data_ptr<float>()[index] = static_cast<float>(std::sin(1.3 * index + phase));
  }
  return x;
}

std::vector<at::Tensor> Parameters(const LayerSpec& layer) {
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& spec : layer.parameters) {
    parameters.push_back(Wavy(spec.shape, static_cast<double>(parameters.size())));
  }
  return parameters;
}

// One query row of attention in fp64, straight from softmax(q k / sqrt(d)) v.
std::vector<double> AttendByHand(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 int64_t position, int64_t visible, int64_t head, int64_t d) {
  const auto at = [&](const at::Tensor& x, int64_t row, int64_t column) {
    return static_cast<double>(x.const_data_ptr<float>()[row * x.size(2) + head * d + column]);
  };
  std::vector<double> weights;
  for (int64_t other = 0; other < visible; ++other) {
    double score = 0;
    for (int64_t c = 0; c < d; ++c) score += at(q, position, c) * at(k, other, c);
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> result(d, 0.0);
  for (int64_t other = 0; other < visible; ++other) {
    for (int64_t c = 0; c < d; ++c) result[c] += weights[other] / sum * at(v, other, c);
  }
  return result;
}

TEST(Attend, MatchesTheFormulaFusedAndWrittenOutCausalAndNot) {
  constexpr int64_t kSequence = 4, kHidden = 6, kHeads = 2, kHeadSize = 3;
  const at::Tensor q = Wavy({1, kSequence, kHidden}, 0), k = Wavy({1, kSequence, kHidden}, 1),
                   v = Wavy({1, kSequence, kHidden}, 2);
  const std::vector<at::Tensor> none;
  for (const bool causal : {false, true}) {
    for (const bool flash : {false, true}) {
      LayerContext context = Evaluating(none);
      const at::Tensor y =
          Attend(context, q, k, v, {.heads = kHeads, .causal = causal, .flash = flash});
      ASSERT_EQ(y.sizes(), q.sizes());
      for (int64_t position = 0; position < kSequence; ++position) {
        const int64_t visible = causal ? position + 1 : kSequence;
        for (int64_t head = 0; head < kHeads; ++head) {
          const auto expected = AttendByHand(q, k, v, position, visible, head, kHeadSize);
          for (int64_t c = 0; c < kHeadSize; ++c) {
            EXPECT_NEAR((y[0][position][head * kHeadSize + c].item<float>()), expected[c], 1e-5)
                << "causal " << causal << " flash " << flash << " position " << position;
          }
        }
      }
    }
  }
}

TEST(Attend, DropsProbabilitiesWithTheKeyedMask) {
  const at::Tensor q = Wavy({2, 4, 6}, 0), k = Wavy({2, 4, 6}, 1), v = Wavy({2, 4, 6}, 2);
  const std::vector<at::Tensor> none;
  const LayerContext::Position place = {.seed = 7, .step = 1, .microbatch = 2, .layer = 3};
  LayerContext context(&none, place, /*training=*/true);
  const at::Tensor y = Attend(context, q, k, v, {.heads = 2, .causal = true, .dropout = 0.5});
  const auto heads = [](const at::Tensor& x) { return x.view({2, 4, 2, 3}).transpose(1, 2); };
  const at::Tensor scores = at::matmul(heads(q), heads(k).transpose(2, 3)) / std::sqrt(3.0);
  const at::Tensor hidden = at::ones({4, 4}, at::kBool).triu(1);
  const at::Tensor mask = KeyedDropoutMask(7, 1, 2, 3, /*draw=*/0, {2, 2, 4, 4}, 0.5);
  const at::Tensor p = at::softmax(scores.masked_fill(hidden, -INFINITY), -1) * mask;
  const at::Tensor expected = at::matmul(p, heads(v)).transpose(1, 2).reshape({2, 4, 6});
  EXPECT_TRUE(at::allclose(y, expected, 1e-5, 1e-6));
}

TEST(Activate, KnowsTheThree) {
  const at::Tensor x = at::full({1}, 1.5, at::kFloat);
  EXPECT_NEAR(Activate(x, "gelu").item<float>(), 1.5 * 0.5 * (1 + std::erf(1.5 / std::sqrt(2.0))),
              1e-6);
  const double inner = std::sqrt(2.0 / M_PI) * (1.5 + 0.044715 * 1.5 * 1.5 * 1.5);
  EXPECT_NEAR(Activate(x, "gelu_new").item<float>(), 1.5 * 0.5 * (1 + std::tanh(inner)), 1e-6);
  EXPECT_EQ(Activate(x, "relu").item<float>(), 1.5f);
  EXPECT_EQ(Activate(-x, "relu").item<float>(), 0.0f);
}

TEST(LayerContext, CountsItsDraws) {
  const std::vector<at::Tensor> none;
  const LayerContext::Position place = {.seed = 7, .step = 1, .microbatch = 2, .layer = 3};
  LayerContext context(&none, place, /*training=*/true);
  for (int draw = 0; draw < 3; ++draw) {
    const at::Tensor mask = context.DropoutMask({64}, 0.5);
    EXPECT_TRUE(at::equal(mask, KeyedDropoutMask(7, 1, 2, 3, draw, {64}, 0.5))) << draw;
  }
}

TEST(LayerContext, DropsNothingInEvaluation) {
  const std::vector<at::Tensor> none;
  LayerContext context = Evaluating(none);
  const at::Tensor x = Wavy({10}, 0);
  EXPECT_TRUE(context.Dropout(x, 0.5).is_same(x));
}

// The gradient of every layer kind of the built-in models, against central differences: the step of
// one loss along a random direction in all parameters and inputs at once.
class LayerGradients : public testing::TestWithParam<std::string> {};

TEST_P(LayerGradients, AreThoseOfFiniteDifferences) {
  ModelOptions options = TinyGpt();
  options.kind = GetParam();
  options.dropout = 0.1;
  if (options.kind == "mlp") options.activation = "gelu";  // relu has a kink to stumble over
  const auto model = BuildModel(options);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(ValidateModel(*model).ok());
  for (size_t index = 0; index < model->spec.layers.size(); ++index) {
    const LayerSpec& spec = model->spec.layers[index];
    const LayerPass::Function function = [&](const std::vector<at::Tensor>& parameters,
                                             const std::vector<at::Tensor>& inputs) {
      LayerContext context(&parameters, {.layer = static_cast<int>(index)}, /*training=*/true);
      return model->forward[index](context, inputs);
    };
    const std::vector<at::Tensor> parameters = Parameters(spec);
    const bool takes_tokens = index == 0;
    const at::Tensor input = takes_tokens ? at::arange(16).remainder(7).reshape({2, 8})
                                          : Wavy({2, 8, options.hidden}, 0.5);
    const auto wanted =
        takes_tokens ? LayerPass::InputGradients::kUnwanted : LayerPass::InputGradients::kWanted;
    LayerPass pass = LayerPass::Train(function, parameters, {input}, wanted);
    const at::Tensor weights = Wavy(pass.outputs[0].sizes(), 0.7);
    const LayerGraph::Gradients gradients = std::move(pass.graph).Backward({weights});
    ASSERT_EQ(gradients.parameters.size(), parameters.size());
    ASSERT_EQ(gradients.inputs[0].defined(), !takes_tokens);

    const auto loss = [&](double step) {
      std::vector<at::Tensor> moved;
      for (const at::Tensor& p : parameters) moved.push_back(p + step * Wavy(p.sizes(), 2.1));
      const at::Tensor x = takes_tokens ? input : input + step * Wavy(input.sizes(), 2.1);
      const at::NoGradGuard not_recording;
      return (function(moved, {x})[0] * weights).sum(at::kDouble).item<double>();
    };
    double slope =
        takes_tokens
            ? 0.0
            : (gradients.inputs[0] * Wavy(input.sizes(), 2.1)).sum(at::kDouble).item<double>();
    for (const at::Tensor& gradient : gradients.parameters) {
      slope += (gradient * Wavy(gradient.sizes(), 2.1)).sum(at::kDouble).item<double>();
    }
    constexpr double kStep = 1e-3;
    const double measured = (loss(kStep) - loss(-kStep)) / (2 * kStep);
    EXPECT_NEAR(measured, slope, 0.02 * std::abs(slope) + 0.05) << spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LayerGradients, testing::ValuesIn(KnownModelKinds()),
                         [](const auto& info) { return info.param; });

TEST(LayerGraph, GivesZerosForWhatTheOutputDoesNotDependOn) {
  const LayerPass::Function function = [](const std::vector<at::Tensor>& parameters,
                                          const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0] * parameters[1]};
  };
  LayerPass pass =
      LayerPass::Train(function, {at::ones({3}), at::full({3}, 2.0)},
                       {at::full({3}, 5.0), at::ones({2})}, LayerPass::InputGradients::kWanted);
  const auto gradients = std::move(pass.graph).Backward({at::ones({3})});
  EXPECT_TRUE(at::equal(gradients.parameters[0], at::zeros({3})));
  EXPECT_TRUE(at::equal(gradients.parameters[1], at::full({3}, 5.0)));
  EXPECT_TRUE(at::equal(gradients.inputs[0], at::full({3}, 2.0)));
  EXPECT_TRUE(at::equal(gradients.inputs[1], at::zeros({2})));
}

TEST(LayerGraph, PassesThroughAndReshapesWithContiguousTensors) {
  const LayerPass::Function function = [](const std::vector<at::Tensor>&,
                                          const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{inputs[0].t(), inputs[0]};
  };
  LayerPass pass =
      LayerPass::Train(function, {}, {Wavy({2, 3}, 0)}, LayerPass::InputGradients::kWanted);
  EXPECT_TRUE(pass.outputs[0].is_contiguous());
  EXPECT_FALSE(pass.outputs[0].requires_grad());
  const auto gradients =
      std::move(pass.graph).Backward({at::full({3, 2}, 2.0), at::full({2, 3}, 3.0)});
  EXPECT_TRUE(gradients.inputs[0].is_contiguous());
  EXPECT_TRUE(at::equal(gradients.inputs[0], at::full({2, 3}, 5.0)));
}

TEST(ValidateModel, WantsOneFunctionForEachLayer) {
  Model model = *BuildModel(TinyGpt());
  model.forward.pop_back();
  EXPECT_EQ(ValidateModel(model),
            absl::InvalidArgumentError(
                "the model has 4 layers and 3 forward functions; it needs one for each"));
  model.forward.push_back(nullptr);
  EXPECT_EQ(ValidateModel(model),
            absl::InvalidArgumentError("layer transformer.head has an empty forward function"));
}

}  // namespace
}  // namespace siphon
