// A layer's backward in two halves against the whole one, for layers as users may write them.

#include "pipeline/torch/graphs/layer_graph.h"

#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipeline/torch/graphs/find_parameter_operators.h"

namespace siphon {
namespace {

using Tensors = std::vector<at::Tensor>;

struct LayerCase {
  std::string name;
  LayerPass::Function function;
  std::vector<std::vector<int64_t>> parameters;  // shapes
  std::vector<int64_t> input = {3, 4, 8};
  LayerPass::InputGradients wanted = LayerPass::InputGradients::kWanted;
};

at::Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  return at::empty(shape, at::kFloat).normal_(0.0, 1.0, at::detail::createCPUGenerator(seed));
}

// Its backward makes both gradients at once, whatever is asked for.
class Scaled final : public torch::autograd::Function<Scaled> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return x * weight;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    return {gradients[0] * saved[1], (gradients[0] * saved[0]).sum(at::IntArrayRef({0, 1}))};
  }
};

std::vector<LayerCase> LayerCases() {
  const auto linear_then_norm = [](const Tensors& p, const Tensors& x) {
    const at::Tensor y = at::gelu(at::linear(x[0], p[0], p[1]), "tanh");
    return Tensors{x[0] + at::layer_norm(y, {8}, p[2], p[3], 1e-5)};
  };
  const auto normalised_weight = [](const Tensors& p, const Tensors& x) {
    const at::Tensor weight = p[0] / p[0].norm() * p[1];
    return Tensors{at::relu(at::linear(x[0], weight))};
  };
  const auto twice = [](const Tensors& p, const Tensors& x) {
    return Tensors{at::linear(at::tanh(at::linear(x[0], p[0])), p[0]) * p[1]};
  };
  const auto two_outputs = [](const Tensors& p, const Tensors& x) {
    const at::Tensor y = at::matmul(x[0], p[0].t());
    return Tensors{y.narrow(2, 0, 4), y.narrow(2, 4, 4).exp()};
  };
  const auto parameter_itself = [](const Tensors& p, const Tensors& x) {
    return Tensors{x[0] * p[0], p[0], p[1].t()};
  };
  const auto convolution = [](const Tensors& p, const Tensors& x) {
    return Tensors{at::relu(at::conv1d(x[0], p[0], p[1], 1, 1))};
  };
  const auto own_function = [](const Tensors& p, const Tensors& x) {
    return Tensors{at::tanh(Scaled::apply(at::tanh(x[0]), p[0]))};
  };
  const auto unused = [](const Tensors& p, const Tensors& x) {
    return Tensors{at::linear(x[0], p[1])};
  };
  const auto no_parameter = [](const Tensors&, const Tensors& x) { return Tensors{x[0].exp()}; };
  const auto embedding = [](const Tensors& p, const Tensors& x) {
    const at::Tensor ids = x[0].abs().floor().to(at::kLong).select(2, 0);
    const at::Tensor sum = at::embedding(p[0], ids) + p[1].narrow(0, 0, 4) + p[2][0];
    return Tensors{at::gelu(sum, "none") * 0.5};
  };
  const std::vector<int64_t> square = {8, 8}, row = {8};
  const auto unwanted = LayerPass::InputGradients::kUnwanted;
  return {{"LinearAndNorm", linear_then_norm, {square, row, row, row}},
          {"NormalisedWeight", normalised_weight, {square, {}}},
          {"AParameterTwice", twice, {square, row}},
          {"TwoOutputs", two_outputs, {square}},
          {"ParametersAmongTheOutputs", parameter_itself, {row, square}},
          {"Convolution", convolution, {{5, 4, 3}, {5}}},
          {"ConvolutionOnData", convolution, {{5, 4, 3}, {5}}, {3, 4, 8}, unwanted},
          {"AFunctionOfTheUsersOwn", own_function, {row}},
          {"AnUnusedParameter", unused, {row, square}},
          {"NoParameter", no_parameter, {}},
          {"NothingToDo", no_parameter, {}, {3, 4, 8}, unwanted},
          {"LinearOnData", linear_then_norm, {square, row, row, row}, {3, 4, 8}, unwanted},
          {"EmbeddingOfData", embedding, {{9, 8}, {6, 8}, {2, 8}}, {3, 4, 8}, unwanted}};
}

struct Prepared {
  LayerPass pass;
  Tensors output_gradients;
};

Prepared Forward(const LayerCase& layer) {
  Tensors parameters;
  for (const std::vector<int64_t>& shape : layer.parameters) {
    parameters.push_back(Random(shape, 7 + parameters.size()));
  }
  Prepared prepared;
  prepared.pass =
      LayerPass::Train(layer.function, parameters, {Random(layer.input, 3)}, layer.wanted);
  for (const at::Tensor& output : prepared.pass.outputs) {
    prepared.output_gradients.push_back(
        Random(output.sizes(), 100 + prepared.output_gradients.size()));
  }
  return prepared;
}

void ExpectSame(const Tensors& expected, const Tensors& actual, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t index = 0; index < expected.size(); ++index) {
    SCOPED_TRACE(std::string(what) + " " + std::to_string(index));
    ASSERT_EQ(actual[index].defined(), expected[index].defined());
    if (!expected[index].defined()) continue;
    EXPECT_EQ(actual[index].sizes(), expected[index].sizes());
    EXPECT_TRUE(actual[index].is_contiguous());
    EXPECT_TRUE(at::equal(actual[index], expected[index]));
  }
}

class LayerHalves : public testing::TestWithParam<LayerCase> {};

TEST_P(LayerHalves, GiveTheBitsOfTheWholeBackward) {
  Prepared whole = Forward(GetParam());
  const LayerGraph::Gradients expected =
      std::move(whole.pass.graph).Backward(whole.output_gradients);
  Prepared halved = Forward(GetParam());
  LayerGraph::InputHalf half = std::move(halved.pass.graph).BackwardInput(halved.output_gradients);
  ExpectSame(expected.inputs, half.inputs, "input");
  ExpectSame(expected.parameters, std::move(half.weights).Compute(), "parameter");
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerHalves, testing::ValuesIn(LayerCases()),
                         [](const auto& info) { return info.param.name; });

// The nodes of x + b, then a linear layer with a bias, by name and in the order of the search.
TEST(FindParameterOperators, NamesWhatTakesAParameterOrAViewOfOne) {
  const at::AutoGradMode recording(true);
  const auto leaf = [](at::IntArrayRef shape) { return Random(shape, 1).requires_grad_(); };
  const at::Tensor x = leaf({3, 8}), b = leaf({8}), weight = leaf({5, 8}), bias = leaf({5});
  const at::Tensor y = at::relu(at::addmm(bias, at::tanh(x + b), weight.t()));
  ParameterLeaves leaves;
  for (const at::Tensor& parameter : {b, weight, bias}) {
    leaves.insert(torch::autograd::impl::gradient_edge(parameter).function.get());
  }
  std::vector<std::string> names;
  for (const auto& edge :
       FindParameterOperators({torch::autograd::impl::gradient_edge(y)}, leaves).operators)
    names.push_back(edge.function->name());
  EXPECT_EQ(names, (std::vector<std::string>{"AddmmBackward0", "AddBackward0"}));
}

}  // namespace
}  // namespace siphon
