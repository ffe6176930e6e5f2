#include "pipeline/torch/keyed_random.h"

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace siphon {
namespace {

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

at::Tensor Mask(uint64_t seed, int64_t step, int microbatch, int layer, int draw) {
  return KeyedDropoutMask(seed, step, microbatch, layer, draw, {32, 64}, 0.25);
}

TEST(KeyedDropoutMask, IsAFunctionOfItsKeyAlone) {
  const at::Tensor mask = Mask(1, 2, 3, 4, 5);
  EXPECT_TRUE(SameBits(mask, Mask(1, 2, 3, 4, 5)));
  EXPECT_FALSE(SameBits(mask, Mask(9, 2, 3, 4, 5))) << "seed";
  EXPECT_FALSE(SameBits(mask, Mask(1, 9, 3, 4, 5))) << "step";
  EXPECT_FALSE(SameBits(mask, Mask(1, 2, 9, 4, 5))) << "microbatch";
  EXPECT_FALSE(SameBits(mask, Mask(1, 2, 3, 9, 5))) << "layer";
  EXPECT_FALSE(SameBits(mask, Mask(1, 2, 3, 4, 9))) << "draw";
  EXPECT_FALSE(SameBits(mask, Mask(1, 2, 4, 3, 5))) << "order";
}

TEST(KeyedDropoutMask, HoldsZerosAndTheInverseOfTheKeptShare) {
  const at::Tensor mask = Mask(1, 2, 3, 4, 5);
  int dropped = 0;
  for (int64_t index = 0; index < mask.numel(); ++index) {
    const float value = mask.const_data_ptr<float>()[index];
    if (value == 0.0f) {
      ++dropped;
    } else {
      EXPECT_EQ(value, 1.0f / 0.75f);
    }
  }
  // 2048 draws of probability 1/4: the mean is 512, five standard deviations are 98.
  EXPECT_NEAR(dropped, 512, 98);
}

TEST(KeyedDropoutMask, IsTheSameOnManyThreadsAtOnce) {
  const at::Tensor mask = Mask(1, 2, 3, 4, 5);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 50; ++round) {
        wrong[thread] += !SameBits(mask, Mask(1, 2, 3, 4, 5));
        Mask(thread, round, 0, 0, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(InitialParameter, IsKeyedBySeedAndName) {
  const ParameterSpec a{"a.weight", {20, 30}, Initializer::kNormal, 0.02};
  ParameterSpec b = a;
  b.name = "b.weight";
  EXPECT_TRUE(SameBits(InitialParameter(a, 1), InitialParameter(a, 1)));
  EXPECT_FALSE(SameBits(InitialParameter(a, 1), InitialParameter(b, 1)));
  EXPECT_FALSE(SameBits(InitialParameter(a, 1), InitialParameter(a, 2)));
}

TEST(InitialParameter, HasTheDeviationThatWasAskedFor) {
  const at::Tensor value =
      InitialParameter({"w", {100, 100}, Initializer::kNormal, 0.5}, /*seed=*/3);
  EXPECT_NEAR(value.mean().item<float>(), 0.0f, 0.025f);  // 5 standard deviations of the mean
  EXPECT_NEAR(value.std().item<float>(), 0.5f, 0.02f);
}

TEST(InitialParameter, KnowsZerosAndOnes) {
  const at::Tensor zeros = InitialParameter({"b", {7}, Initializer::kZeros}, 3);
  const at::Tensor ones = InitialParameter({"n", {7}, Initializer::kOnes}, 3);
  EXPECT_TRUE(SameBits(zeros, at::zeros({7})));
  EXPECT_TRUE(SameBits(ones, at::ones({7})));
}

}  // namespace
}  // namespace siphon
