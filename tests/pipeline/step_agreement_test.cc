#include "pipeline/step_agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/worker_layout.h"

namespace siphon {
namespace {

TEST(NormOfNorms, IsTheRootOfTheSquares) {
  EXPECT_EQ(NormOfNorms(std::vector<float>{3, 4}), 5.0);
  EXPECT_EQ(NormOfNorms({}), 0.0);
}

TEST(NormOfNorms, AddsSquaresInDoublePrecisionInOrder) {
  // In single precision the small squares would vanish one by one beside the large one.
  const std::vector<float> norms = {4096.0f, 1.0f, 1.0f, 1.0f};
  EXPECT_EQ(NormOfNorms(norms), std::sqrt(4096.0 * 4096.0 + 3.0));
  EXPECT_EQ(NormOfNorms(std::vector<float>{1e30f, 1e30f}),  // the square is beyond a float
            std::sqrt(2.0 * static_cast<double>(1e30f) * static_cast<double>(1e30f)));
}

TEST(ClippingFactor, ShortensLongGradientsOnly) {
  EXPECT_EQ(ClippingFactor(0.5, 1.0), 1.0f);
  EXPECT_EQ(ClippingFactor(4.0, 1.0), 1.0f / (4.0f + 1e-6f));
  EXPECT_EQ(ClippingFactor(0.0, 1.0), 1.0f);
}

TEST(ClippingFactor, IsOneWhenClippingIsOff) { EXPECT_EQ(ClippingFactor(1e9, 0.0), 1.0f); }

TEST(WorkerLayout, ChannelsAreThoseThatItsWorkersUseAndNoOthers) {
  const WorkerLayout layout{.worker_of_stage = {WorkerId(0), WorkerId(1), WorkerId(1), WorkerId(2)},
                            .shared_parameters = {{.name = "tied",
                                                   .uses = {{1, 0}, {3, 0}},
                                                   .stages = {StageId(1), StageId(3)}}},
                            .owned_parameters = {1, 1, 1, 1}};
  const std::vector<Channel> expected = {
      {WorkerId(0), WorkerId(1), Lane::kForward},  {WorkerId(0), WorkerId(1), Lane::kControl},
      {WorkerId(0), WorkerId(2), Lane::kControl},  {WorkerId(1), WorkerId(0), Lane::kBackward},
      {WorkerId(1), WorkerId(0), Lane::kControl},  {WorkerId(1), WorkerId(2), Lane::kForward},
      {WorkerId(1), WorkerId(2), Lane::kControl},  {WorkerId(2), WorkerId(0), Lane::kControl},
      {WorkerId(2), WorkerId(1), Lane::kBackward}, {WorkerId(2), WorkerId(1), Lane::kControl}};
  EXPECT_EQ(ChannelsOf(layout), expected);
}

TEST(WorkerLayout, AWorkerThatIsAloneNeedsNoChannel) {
  EXPECT_TRUE(ChannelsOf({.worker_of_stage = {WorkerId(0), WorkerId(0)},
                          .shared_parameters = {},
                          .owned_parameters = {1, 1}})
                  .empty());
}

}  // namespace
}  // namespace siphon
