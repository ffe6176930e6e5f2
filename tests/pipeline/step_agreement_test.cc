#include "pipeline/step_agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/worker_layout.h"
#include "tests/pipeline/transport/thread_worlds.h"

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

TEST(AgreeOnStep, AddsSquaresStageByStageWhoeverHoldsThem) {
  // 1 + 1e16 is 1e16 in double precision, and stays so; (1 + 1) + 1e16 + 1, which is the order of
  // the workers, is not.
  const std::vector<float> norms = {1, 1e8f, 1, 1};
  const WorkerLayout layout{.worker_of_stage = {WorkerId(0), WorkerId(1), WorkerId(0), WorkerId(1)},
                            .shared_parameters = {},
                            .owned_parameters = {1, 1, 1, 1}};
  ASSERT_NE(NormOfNorms(std::vector<float>{norms[0], norms[2], norms[1], norms[3]}), 1e8);
  ThreadJob job = MakeInProcessJob(2, nullptr);
  RunInThreads(job, [&](WorkerId me, Transport& transport) {
    const StepContribution mine{
        .norms = {{StageId(me.value), {norms[static_cast<size_t>(me.value)]}},
                  {StageId(me.value + 2), {norms[static_cast<size_t>(me.value) + 2]}}},
        .losses = me == WorkerId(1) ? std::vector<float>{0.5f, 0.25f} : std::vector<float>{}};
    const auto agreed = AgreeOnStep(me, layout, 2, mine, &transport);
    ASSERT_TRUE(agreed.ok()) << agreed.status();
    EXPECT_EQ(agreed->gradient_norm, 1e8);
    EXPECT_EQ(agreed->losses, (std::vector<float>{0.5f, 0.25f}));
  });
}

TEST(AgreeOnStep, RefusesAnotherNumberOfNormsOrLossesThanTheLayoutSays) {
  WorkerLayout layout{
      .worker_of_stage = {WorkerId(0)}, .shared_parameters = {}, .owned_parameters = {2}};
  const StepContribution mine{.norms = {{StageId(0), {1}}}, .losses = {0.5f, 0.25f}};
  EXPECT_EQ(AgreeOnStep(WorkerId(0), layout, 2, mine, nullptr).status(),
            absl::InternalError("stage 0 gives 1 gradient norms and owns 2 parameters"));
  layout.owned_parameters = {1};
  EXPECT_EQ(AgreeOnStep(WorkerId(0), layout, 3, mine, nullptr).status(),
            absl::InternalError("the last stage gives 2 losses for 3 microbatches"));
  EXPECT_EQ(
      AgreeOnStep(WorkerId(0), layout, 2, {.norms = {}, .losses = mine.losses}, nullptr).status(),
      absl::InternalError("stage 0 gives 0 gradient norms and owns 1 parameters"));
}

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
