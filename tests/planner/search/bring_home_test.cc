// Optimizer state that comes home from the host to step on the device.

#include "planner/search/bring_home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/home_groups.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two workers of two layers, a microsecond a forward of a layer, two a backward. State of a layer
// takes the host a thousand times as long to step as the device, and a microsecond to be copied:
// less than the second worker waits for its first forward.
PlanningProblem TwoWorkers() {
  PlanningProblem problem = ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4),
                                      WithHost(UniformTopology(2, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(40'000);
  return problem;
}

DraftPlan AllOnHost(const PlanningProblem& problem) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) PutStepOnHost(stage);
  return draft;
}

// Of the first worker two microbatches are live at once, of the second one.
TEST(BestBroughtHome, StepsOnTheDeviceWhatHasTimeToComeHome) {
  PlanningProblem problem = TwoWorkers();
  SetCapacity(problem, Bytes(2'100));
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
  PlanningProblem problem = TwoWorkers();
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
  const PlanningProblem problem = TwoWorkers();
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(absl::IsResourceExhausted(BestBroughtHome(simulator, *kept).status()));
}

}  // namespace
}  // namespace siphon
