#include "pipeline/torch/parameters/updates_as_on_cuda.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "pipeline/torch/parameters/optimizers.h"

namespace siphon {
namespace {

// Values of all sizes, none and denormal ones among them.
at::Tensor Values(int64_t count, std::mt19937& random) {
  at::Tensor tensor = at::empty({count}, at::kFloat);
  std::uniform_real_distribution<float> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-30, 2);
  for (int64_t at = 0; at < count; ++at) {
    const int scale = at % 31 == 7 ? -140 : exponent(random);
    tensor.mutable_data_ptr<float>()[at] =
        at % 29 == 3 ? 0.0f : std::ldexp(mantissa(random), scale);
  }
  return tensor;
}

AdamOnHost Adam(int64_t count, bool decoupled, double decay, std::mt19937& random) {
  AdamOnHost update = {.parameter = Values(count, random),
                       .gradient = Values(count, random),
                       .first_moment = Values(count, random),
                       .second_moment = Values(count, random).abs(),
                       .learning_rate = 3e-4,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
                       .weight_decay = decay,
                       .decoupled = decoupled};
  update.power1 = std::pow(0.9f, 5.0f);
  update.power2 = std::pow(0.95f, 5.0f);
  return update;
}

AdamOnHost Copy(const AdamOnHost& update) {
  AdamOnHost copy = update;
  copy.parameter = update.parameter.clone();
  copy.first_moment = update.first_moment.clone();
  copy.second_moment = update.second_moment.clone();
  return copy;
}

// The operations of the kernel's machine code, one value and one line each.
void AdamStepByStep(const AdamOnHost& u, int64_t at) {
  volatile float p = u.parameter.const_data_ptr<float>()[at];
  volatile float g = u.gradient.const_data_ptr<float>()[at];
  volatile float m = u.first_moment.const_data_ptr<float>()[at];
  volatile float v = u.second_moment.const_data_ptr<float>()[at];
  const float rate = 3e-4f, beta1 = 0.9f, beta2 = 0.95f;
  const auto decay = static_cast<float>(u.weight_decay);
  volatile float rate_decay = rate * decay;
  if (decay != 0 && u.decoupled) p = std::fma(-rate_decay, p, p);
  const int64_t count = u.parameter.numel();
  const bool first_of_four = (count % 4 == 0 ? at : at / 512) % 4 == 0;
  if (decay != 0 && !u.decoupled && !first_of_four) g = std::fma(decay, p, g);
  if (decay != 0 && !u.decoupled && first_of_four) {
    volatile float product = decay * p;
    g = product + g;
  }
  volatile float square = g * g;
  volatile float new_part = std::fma(-beta1, g, g);
  m = std::fma(m, beta1, new_part);
  volatile float new_square = std::fma(-beta2, square, square);
  v = std::fma(v, beta2, new_square);
  volatile float correction1 = 1 - u.power1;
  volatile float step = rate / correction1;
  volatile float correction2 = std::sqrt(1 - u.power2);
  volatile float root = std::sqrt(v);
  root = root / correction2;
  root = root + 1e-8f;
  volatile float change = step * m;
  change = change / root;
  u.parameter.mutable_data_ptr<float>()[at] = p - change;
  u.first_moment.mutable_data_ptr<float>()[at] = m;
  u.second_moment.mutable_data_ptr<float>()[at] = v;
}

void ExpectEqual(const at::Tensor& expected, const at::Tensor& actual, const char* what) {
  EXPECT_TRUE(at::equal(expected.view(at::kInt), actual.view(at::kInt))) << what;
}

TEST(UpdatesAsOnCuda, RoundAdamAfterEachOperationOfTheKernel) {
  std::mt19937 random(3);
  // Of one vector, with a rest, and shared by threads.
  for (const int64_t count : {1, 7, 64, 1001, 50'001, 50'004}) {
    for (const bool decoupled : {false, true}) {
      for (const double decay : {0.0, 0.1}) {
        SCOPED_TRACE(testing::Message() << count << (decoupled ? " adamw " : " adam ") << decay);
        const AdamOnHost expected = Adam(count, decoupled, decay, random);
        const AdamOnHost actual = Copy(expected);
        UpdateAsOnCuda(actual);
        for (int64_t at = 0; at < count; ++at) AdamStepByStep(expected, at);
        ExpectEqual(expected.parameter, actual.parameter, "parameter");
        ExpectEqual(expected.first_moment, actual.first_moment, "first moment");
        ExpectEqual(expected.second_moment, actual.second_moment, "second moment");
      }
    }
  }
}

// By hand: 1 + 2^-12 squared is 1 + 2^-11 + 2^-24, which float32 rounds to 1 + 2^-11; beta 0.5
// halves it exactly. A momentum of 0.5 times 3, and 2^-23 beside: 1.5 + 2^-23.
TEST(UpdatesAsOnCuda, GiveWhatAHandComputes) {
  const auto value = [](double number) { return at::full({1}, number, at::kFloat); };
  AdamOnHost adam = {.parameter = value(1),
                     .gradient = value(1 + std::ldexp(1, -12)),
                     .first_moment = value(0),
                     .second_moment = value(0),
                     .learning_rate = 0.5,
                     .beta1 = 0.5,
                     .beta2 = 0.5,
                     .power1 = 0.5,
                     .power2 = 0.75};
  UpdateAsOnCuda(adam);
  EXPECT_EQ(adam.second_moment.item<float>(), 0.5f + std::ldexp(1.0f, -12));
  EXPECT_EQ(adam.first_moment.item<float>(), 0.5f + std::ldexp(1.0f, -13));
  SgdOnHost sgd = {.parameter = value(1),
                   .gradient = value(std::ldexp(1, -23)),
                   .momentum_buffer = value(3),
                   .learning_rate = 0.5,
                   .momentum = 0.5};
  UpdateAsOnCuda(sgd);
  EXPECT_EQ(sgd.momentum_buffer.item<float>(), 1.5f + std::ldexp(1.0f, -23));
  // 1 - 0.75 - 2^-24, which float32 has.
  EXPECT_EQ(sgd.parameter.item<float>(), 0.25f - std::ldexp(1.0f, -24));
}

// Rounded otherwise, and the same update: for each optimizer that there is.
TEST(UpdatesAsOnCuda, AreThoseOfTheHostsKernelsButForRounding) {
  std::mt19937 random(5);
  PowersOnDevice powers(at::kCPU);
  for (const std::string& name : KnownOptimizers()) {
    for (const double decay : {0.0, 0.1}) {
      for (const double momentum : {0.0, 0.9}) {
        SCOPED_TRACE(testing::Message() << name << ", decay " << decay << ", " << momentum);
        const auto optimizer = FindOptimizer(name);
        ASSERT_TRUE(optimizer.ok()) << optimizer.status();
        OptimizerOptions options;
        options.name = name;
        options.momentum = momentum;
        const auto make = [&](uint32_t seed) {
          std::mt19937 same(seed);
          std::uniform_real_distribution<float> values(-1, 1);
          const auto tensor = [&] {
            at::Tensor made = at::empty({37}, at::kFloat);
            for (int at = 0; at < 37; ++at) made.mutable_data_ptr<float>()[at] = values(same);
            return made;
          };
          ParameterUpdate update = {.parameter = tensor(),
                                    .gradient = tensor(),
                                    .update_count = at::full({}, 300, at::kFloat),
                                    .learning_rate = 0.01,
                                    .weight_decay = decay};
          for (int moment = 0; moment < (*optimizer)->moments(options); ++moment) {
            update.moments.push_back(tensor().abs());
          }
          return update;
        };
        const auto seed = static_cast<uint32_t>(random());
        const ParameterUpdate by_kernel = make(seed), as_on_cuda = make(seed);
        (*optimizer)->update(options, by_kernel);
        (*optimizer)->update_as_on_cuda(options, as_on_cuda, powers);
        EXPECT_TRUE(at::allclose(by_kernel.parameter, as_on_cuda.parameter, 1e-5, 1e-7));
        EXPECT_FALSE(at::equal(make(seed).parameter, as_on_cuda.parameter)) << "nothing changed";
        for (size_t moment = 0; moment < by_kernel.moments.size(); ++moment) {
          EXPECT_TRUE(
              at::allclose(by_kernel.moments[moment], as_on_cuda.moments[moment], 1e-5, 1e-7));
        }
      }
    }
  }
}

// What is asked for may come in any order, as a resume has it.
TEST(PowersOnDevice, ArePowersOfWhateverUpdateIsAskedFor) {
  PowersOnDevice powers(at::kCPU);
  for (const int64_t update : {1, 2, 256, 257, 100'000, 3, 514}) {
    for (const double beta : {0.9, 0.999}) {
      EXPECT_NEAR(powers.Of(beta, update), std::pow(beta, update), 1e-5) << beta << "^" << update;
    }
  }
}

}  // namespace
}  // namespace siphon
