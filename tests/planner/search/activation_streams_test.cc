#include "planner/search/activation_streams.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Weights and gradients of a stage are 9.7 GB.
PlanningProblem TightProblem() { return GptThatStreams(32, 12'500'000'000); }

// Beside the weights there is no room for all layers of two microbatches; to compute all of them
// again takes longer than to have some of them with the host.
TEST(BestActivationStreams, FitsWhereWholeMicrobatchesDoNot) {
  const PlanningProblem problem = TightProblem();
  DraftSimulator simulator(problem);
  DraftPlan kept = KeepingDraft(problem);
  for (StageDraft& stage : kept.stages) PutStepOnHost(stage);
  const auto with_all = [&](Placement placement) {
    DraftPlan draft = kept;
    for (StageDraft& stage : draft.stages) {
      std::fill(stage.activations.begin(), stage.activations.end(), placement);
      stage.direct = DirectBackward::kDrop;
    }
    return simulator.Run(draft).value();
  };
  const auto streamed = BestActivationStreams(simulator, simulator.Run(kept).value());
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_TRUE(Fits(*streamed)) << FormatBytes(streamed->score.excess);
  EXPECT_TRUE(StreamsActivations(streamed->draft));
  EXPECT_FALSE(Fits(with_all(Placement::kHostSwap)));
  const SimulatedDraft again = with_all(Placement::kRecompute);
  EXPECT_TRUE(Fits(again));
  EXPECT_LT(streamed->score.step, again.score.step);
}

TEST(StreamsActivations, IsOfStagesThatSwapSome) {
  DraftPlan draft = KeepingDraft(TightProblem());
  draft.stages[1].timing.groups_out_behind = 2;
  EXPECT_FALSE(StreamsActivations(draft));
  draft.stages[1].activations[3] = Placement::kHostSwap;
  EXPECT_TRUE(StreamsActivations(draft));
}

}  // namespace
}  // namespace siphon
