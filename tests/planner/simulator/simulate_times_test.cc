#include "planner/simulator/simulate_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

TEST(MomentCurve, HasTheMostOfEachMoment) {
  MomentCurve curve(Bytes(5), Nanos(4));  // moments of 1 ns
  curve.Change(Bytes(3), Nanos(1));
  curve.Change(Bytes(-6), Nanos(1));
  curve.Change(Bytes(4), Nanos(3));
  EXPECT_THAT(curve.Take(), ElementsAre(Bytes(5), Bytes(8), Bytes(2), Bytes(6), Bytes(6)));
}

TEST(MomentCurve, TakesLongerMomentsForLongerSteps) {
  MomentCurve curve(Bytes(0), Nanos(3 * LentMemory::kMostMoments));  // 3 ns each
  curve.Change(Bytes(7), Nanos(2));
  curve.Change(Bytes(-7), Nanos(3));
  const std::vector<Bytes> most = curve.Take();
  ASSERT_EQ(most.size(), static_cast<size_t>(LentMemory::kMostMoments) + 1);
  EXPECT_EQ(most[0], Bytes(7));
  EXPECT_EQ(most[1], Bytes(7)) << "until its first nanosecond";
  EXPECT_EQ(most[2], Bytes(0));
}

TEST(MomentCurve, OfAStepThatTakesNoTimeHasOneMoment) {
  MomentCurve curve(Bytes(2), Nanos(0));
  curve.Change(Bytes(1), Nanos(0));
  EXPECT_THAT(curve.Take(), ElementsAre(Bytes(3)));
}

// One layer of 100 bytes on device 0, F and B of 10 and 20 ns, two microbatches; the first goes to
// device 1, which has no worker, at 10 bytes a nanosecond, and comes back.
SimulationInput OneOwner() {
  SimulationInput input =
      EqualStages(ParsedSchedule("0SWAP_OUT0.0 0F0 0F1 0SWAP_OUT_END0.0 0B1 0SWAP_IN0.0 0B0\n"),
                  {.forward = Nanos(10),
                   .input_backward = Nanos(10),
                   .weight_backward = Nanos(10),
                   .stash = Bytes(100)});
  input.layers = {{LayerOf(input.stages[0])}};
  input.topology = UniformTopology(2, BytesPerSecond(10'000'000'000), Nanos(0));
  input.device_of_worker = {DeviceId(0)};
  input.memory.stages = {
      {.groups = {{{.layers = {0, 1}, .bytes = Bytes(100)},
                   {.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(100)}}}}}}};
  return input;
}

// F0 [0,10), out [10,20), F1 [10,20), B1 [20,40), in [40,50), B0 [50,70).
TEST(SimulateTimes, TellsWhatIsLentWhen) {
  const auto times = SimulateTimes(OneOwner(), LendingDetail::kLent);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->step.step_time, Nanos(70));
  ASSERT_EQ(times->lent.own.size(), 1u);
  // Both microbatches are there in [10,20), and one of them leaves as the moment 20 begins.
  std::vector<Bytes> own(71, Bytes(100));
  for (int moment = 10; moment <= 20; ++moment) own[moment] = Bytes(200);
  std::vector<Bytes> parked(71, Bytes(0));
  for (int moment = 10; moment <= 50; ++moment) parked[moment] = Bytes(100);
  EXPECT_EQ(times->lent.own[0], own);
  EXPECT_EQ(times->lent.parked[0], parked);
}

TEST(SimulateTimes, IsTheStepWithoutItsPictures) {
  const SimulationInput input = OneOwner();
  SimulatedStep step = Simulated(input);
  EXPECT_FALSE(step.lanes.empty());
  EXPECT_FALSE(step.memory.empty());
  step.lanes.clear();
  step.memory.clear();
  step.other_memory.clear();
  for (const LendingDetail lending : {LendingDetail::kNone, LendingDetail::kLent}) {
    const auto times = SimulateTimes(input, lending);
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->step, step);
  }
}

}  // namespace
}  // namespace siphon
