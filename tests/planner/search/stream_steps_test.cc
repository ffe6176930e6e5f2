// Optimizer state that steps on the device beside other layers' steps on the host.

#include "planner/search/stream_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/home_groups.h"
#include "planner/steps_on_host.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

constexpr BytesPerSecond kByteInFourNanos{250'000'000};

// Two workers of two layers. The host steps a layer in 5 microseconds; its state takes 4 to the
// device and 4 back, so that two layers take either 10 or, one behind the other, 12 at least.
PlanningProblem TwoWorkers() {
  PlanningProblem problem =
      ProblemOf(LayerOfMuchState(), 4, LoweredSchedule("1f1b", 2, 4),
                WithHost(UniformTopology(2, kByteInFourNanos, Nanos(0)), 1,
                         {.to_host = kByteInFourNanos, .from_host = kByteInFourNanos}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(20'000);
  SetCapacity(problem, Bytes(1'900));
  return problem;
}

DraftPlan All(const PlanningProblem& problem, UpdatePlace update) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    PutStepOnHost(stage);
    stage.update = update;
  }
  return draft;
}

// A layer of each stage here and one there: the host then has half as much to do.
TEST(BestStreamed, StepsHereAndThereAtOnce) {
  const PlanningProblem problem = TwoWorkers();
  DraftSimulator simulator(problem);
  const auto host = simulator.Run(All(problem, UpdatePlace::kHost));
  const auto device = simulator.Run(All(problem, UpdatePlace::kDevice));
  ASSERT_TRUE(host.ok() && device.ok()) << host.status() << device.status();
  ASSERT_TRUE(Fits(*host));
  const auto streamed = BestStreamed(simulator, *host);
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_TRUE(Fits(*streamed));
  EXPECT_LE(streamed->score.step, host->score.step - Nanos(9'000));
  EXPECT_LT(streamed->score.step, device->score.step);
  EXPECT_TRUE(Streams(streamed->draft));
  for (int layer = 0; layer < 4; ++layer) {
    const StagePlan& stage = streamed->memory.stages[layer / 2];
    EXPECT_EQ(StepsOnHost(stage, layer), layer % 2 == 1) << layer;
  }
  EXPECT_THAT(HomeGroupsOf(streamed->schedule, streamed->memory), testing::IsEmpty());
}

TEST(BestStreamed, StartsWithoutStepsOnTheHost) {
  const PlanningProblem problem = TwoWorkers();
  DraftSimulator simulator(problem);
  const auto device = simulator.Run(All(problem, UpdatePlace::kDevice));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_FALSE(Streams(device->draft));
  const auto streamed = BestStreamed(simulator, *device);
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_TRUE(Streams(streamed->draft));
}

TEST(BestStreamed, NeedsAHostThatSteps) {
  PlanningProblem problem = TwoWorkers();
  problem.host_step = Nanos(0);
  DraftSimulator simulator(problem);
  const auto device = simulator.Run(All(problem, UpdatePlace::kDevice));
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_TRUE(absl::IsResourceExhausted(BestStreamed(simulator, *device).status()));
}

}  // namespace
}  // namespace siphon
