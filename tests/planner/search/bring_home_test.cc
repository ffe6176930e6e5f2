// Optimizer state that comes home from the host to step on the device.

#include "planner/search/bring_home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/home_groups.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

DraftPlan AllOnHost(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) PutStepOnHost(stage);
  return draft;
}

TEST(BestBroughtHome, StepsOnTheDeviceWhatHasTimeToComeHome) {
  const PlanningProblem problem = TwoWorkersOfMuchState(Bytes(2'100));
  DraftSimulator simulator(problem);
  const auto on_host = simulator.Run(AllOnHost(problem));
  ASSERT_TRUE(on_host.ok()) << on_host.status();
  ASSERT_TRUE(Fits(*on_host));
  const auto home = BestBroughtHome(simulator, *on_host);
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_TRUE(Fits(*home));
  // The host steps two of the four layers no more, each in a quarter of its time.
  EXPECT_LE(home->score.step, on_host->score.step - Nanos(20'000));
  EXPECT_THAT(HomeGroupsOf(home->schedule, home->memory), testing::Not(testing::IsEmpty()));
  EXPECT_LE(home->peaks[0], Bytes(2'100));
  EXPECT_LE(home->peaks[1], Bytes(2'100));
}

// No time is lost where nothing can.
TEST(BestBroughtHome, IsNotSlowerWithoutRoom) {
  PlanningProblem problem = TwoWorkersOfMuchState(/*capacity=*/Bytes(0));
  DraftSimulator roomy(problem);
  const auto alone = roomy.Run(AllOnHost(problem));
  ASSERT_TRUE(alone.ok()) << alone.status();
  SetCapacity(problem, std::max(alone->peaks[0], alone->peaks[1]));
  DraftSimulator simulator(problem);
  const auto on_host = simulator.Run(AllOnHost(problem));
  ASSERT_TRUE(on_host.ok()) << on_host.status();
  const auto home = BestBroughtHome(simulator, *on_host);
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_TRUE(Fits(*home));
  EXPECT_LE(home->score.step, on_host->score.step);
}

TEST(BestBroughtHome, NeedsStepsOnTheHost) {
  const PlanningProblem problem = TwoWorkersOfMuchState(/*capacity=*/Bytes(0));
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(absl::IsResourceExhausted(BestBroughtHome(simulator, *kept).status()));
}

}  // namespace
}  // namespace siphon
