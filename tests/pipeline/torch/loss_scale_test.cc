// Our loss scale beside LibTorch's own operators for it.

#include "pipeline/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pipeline/torch/aten.h"

namespace siphon {
namespace {

TEST(LossScaleOfLibTorch, GoesAsOurs) {
  constexpr double kGrowth = 2, kBackoff = 0.5;
  at::Tensor scale = at::full({1}, kFirstLossScale, at::kFloat);
  at::Tensor fine = at::zeros({1}, at::kInt);
  LossScale ours{.scale = kFirstLossScale};
  for (int step = 0; step < 7000; ++step) {
    const bool overflows = step % 2500 == 17 || step == 4040;
    const at::Tensor found = at::full({1}, overflows ? 1.0F : 0.0F, at::kFloat);
    at::_amp_update_scale_(scale, fine, found, kGrowth, kBackoff, kStepsToGrow);
    ours = AfterStep(ours, overflows ? StepTaken::kSkipped : StepTaken::kUpdated);
    ASSERT_EQ(scale.item<float>(), ours.scale) << step;
    ASSERT_EQ(fine.item<int>(), ours.fine_steps) << step;
  }
  EXPECT_EQ(ours.skipped_steps, 4);
}

// A gradient that is no number shows in the norm that all agree on, and dividing by the scale is
// LibTorch's unscaling to the bit.
TEST(LossScaleOfLibTorch, FindsAndUnscalesTheSameGradients) {
  const float scale = 4096;
  for (const float worst :
       {1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor theirs = at::linspace(-3, 5, 1000, at::kFloat);
    theirs[500] = worst;
    const at::Tensor ours = theirs.clone();
    at::Tensor found = at::zeros({1}, at::kFloat);
    at::_amp_foreach_non_finite_check_and_unscale_({theirs}, found,
                                                   at::full({1}, 1 / scale, at::kFloat));
    const auto norm = at::linalg_vector_norm(ours).item<float>();
    EXPECT_EQ(found.item<float>() != 0, !std::isfinite(norm)) << worst;
    if (std::isfinite(norm)) {
      EXPECT_TRUE(at::equal(theirs, ours.mul(1 / scale)));
    }
  }
}

}  // namespace
}  // namespace siphon
