#include "pipeline/torch/parameters/optimizers.h"

#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace siphon {
namespace {

constexpr int kElements = 5;
constexpr double kRate = 0.1;

// One element's state, as the papers' formulas have it, in fp64.
struct Element {
  double value = 0;
  double first = 0;
  double second = 0;
};
using Formula = std::function<void(const OptimizerOptions&, double decay, int update,
                                   double gradient, Element& element)>;

// Loshchilov and Hutter 2019, algorithm 2 (adamw), and Kingma and Ba 2015, algorithm 1 (adam, decay
// as an L2 term).
Formula AdamFormula(bool decoupled) {
  return [decoupled](const OptimizerOptions& o, double decay, int t, double g, Element& e) {
    if (decoupled) {
      e.value *= 1 - kRate * decay;
    } else {
      g += decay * e.value;
    }
    e.first = o.beta1 * e.first + (1 - o.beta1) * g;
    e.second = o.beta2 * e.second + (1 - o.beta2) * g * g;
    const double first = e.first / (1 - std::pow(o.beta1, t));
    const double second = e.second / (1 - std::pow(o.beta2, t));
    e.value -= kRate * first / (std::sqrt(second) + o.epsilon);
  };
}

void SgdFormula(const OptimizerOptions& o, double decay, int, double g, Element& e) {
  g += decay * e.value;
  e.first = o.momentum * e.first + g;
  e.value -= kRate * e.first;
}

struct Case {
  std::string name;
  OptimizerOptions options;
  double decay = 0;
  Formula formula;
};

OptimizerOptions Options(const std::string& name, double momentum) {
  OptimizerOptions options;
  options.name = name;
  options.momentum = momentum;
  return options;
}

class Optimizers : public testing::TestWithParam<Case> {};

TEST_P(Optimizers, FollowTheWrittenOutFormula) {
  const Case& test = GetParam();
  const auto traits = FindOptimizer(test.options.name);
  ASSERT_TRUE(traits.ok()) << traits.status();
  ParameterUpdate update;
  update.parameter = at::empty({kElements}, at::kFloat);
  update.gradient = at::empty({kElements}, at::kFloat);
  update.learning_rate = kRate;
  update.weight_decay = test.decay;
  update.update_count = at::zeros({}, at::kFloat);
  for (int moment = 0; moment < (*traits)->moments(test.options); ++moment) {
    update.moments.push_back(at::zeros({kElements}, at::kFloat));
  }
  std::vector<Element> expected(kElements);
  for (int index = 0; index < kElements; ++index) {
    expected[index].value = 0.5 - 0.2 * index;
    update.parameter.mutable_data_ptr<float>()[index] = static_cast<float>(expected[index].value);
  }
  for (int t = 1; t <= 4; ++t) {
    update.update_count.fill_(t);
    for (int index = 0; index < kElements; ++index) {
      const double gradient = std::sin(3.0 * t + index);
      update.gradient.mutable_data_ptr<float>()[index] = static_cast<float>(gradient);
      test.formula(test.options, test.decay, t, gradient, expected[index]);
    }
    (*traits)->update(test.options, update);
    for (int index = 0; index < kElements; ++index) {
      EXPECT_NEAR(update.parameter.const_data_ptr<float>()[index], expected[index].value, 1e-6)
          << "update " << t << " element " << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formulas, Optimizers,
    testing::Values(Case{"AdamW", Options("adamw", 0), 0.1, AdamFormula(true)},
                    Case{"AdamWWithoutDecay", Options("adamw", 0), 0.0, AdamFormula(true)},
                    Case{"Adam", Options("adam", 0), 0.1, AdamFormula(false)},
                    Case{"Sgd", Options("sgd", 0), 0.1, SgdFormula},
                    Case{"SgdWithMomentum", Options("sgd", 0.9), 0.1, SgdFormula}),
    [](const auto& info) { return info.param.name; });

TEST(Optimizers, KeepNoMomentsThatTheyDoNotUse) {
  const auto moments = [](const OptimizerOptions& options) {
    return (*FindOptimizer(options.name))->moments(options);
  };
  EXPECT_EQ(moments(Options("adamw", 0)), 2);
  EXPECT_EQ(moments(Options("sgd", 0)), 0);
  EXPECT_EQ(moments(Options("sgd", 0.9)), 1);
}

}  // namespace
}  // namespace siphon
