// Optimizer steps that some workers below each switch take on the host.

#include "planner/search/spread_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Four workers of one layer below two switches, whose uplinks take as long for the state of a
// worker, there and back at once, as the host for its step.
PlanningProblem TwoSwitches() {
  const LayerProfile layer{.forward = Nanos(10),
                           .input_backward = Nanos(10),
                           .weight_backward = Nanos(10),
                           .optimizer = Nanos(1),
                           .parameters = Bytes(10),
                           .gradients = Bytes(10),
                           .optimizer_state = Bytes(1000),
                           .saved = {{"all", Bytes(10)}}};
  PlanningProblem problem = ProblemOf(layer, 4, LoweredSchedule("gpipe", 4, 4),
                                      WithHost(UniformTopology(4, kByteANano, Nanos(0)), 2,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  problem.granule = Bytes(1);
  problem.host_step = Nanos(4000);
  SetCapacity(problem, Bytes(1100));
  return problem;
}

// "dhdh": a letter a stage, of the device or the host.
std::string Places(const DraftPlan& draft) {
  std::string places;
  for (const StageDraft& stage : draft.stages) {
    places += stage.update == UpdatePlace::kHost ? 'h' : 'd';
  }
  return places;
}

TEST(SpreadSteps, AreAsManyBelowEachSwitch) {
  const PlanningProblem problem = TwoSwitches();
  DraftPlan draft = KeepingDraft(problem);
  PutStepOnHost(draft.stages[0]);
  draft.stages[1].optimizer_state = {Placement::kPeerSwap};
  std::vector<std::string> places;
  for (const DraftPlan& spread : SpreadSteps(problem, draft)) {
    places.push_back(Places(spread));
    EXPECT_EQ(spread.stages[0].optimizer_state[0], Placement::kHostSwap)
        << "what the host held stays there";
    const bool on_host = spread.stages[1].update == UpdatePlace::kHost;
    EXPECT_EQ(spread.stages[1].optimizer_state[0],
              on_host ? Placement::kHostSwap : Placement::kPeerSwap);
  }
  EXPECT_THAT(places, testing::ElementsAre("dddd", "dhdh", "hdhd", "hhhh"));
}

TEST(SpreadSteps, FollowTheDeviceMap) {
  const PlanningProblem problem = TwoSwitches();
  DraftPlan draft = KeepingDraft(problem);
  draft.mapping.device_of_worker = {DeviceId(0), DeviceId(2), DeviceId(1), DeviceId(3)};
  std::vector<std::string> places;
  for (const DraftPlan& spread : SpreadSteps(problem, draft)) places.push_back(Places(spread));
  EXPECT_THAT(places, testing::ElementsAre("ddhh", "hhdd", "hhhh")) << "but not the draft itself";
}

TEST(SpreadSteps, AreFasterThanOnePlaceForAll) {
  PlanningProblem problem = TwoSwitches();
  SetCapacity(problem, Bytes(1030));  // activations and state do not fit together
  DraftSimulator simulator(problem);
  const auto with = [&](UpdatePlace place) {
    DraftPlan draft = KeepingDraft(problem);
    for (StageDraft& stage : draft.stages) {
      PutStepOnHost(stage);
      stage.update = place;
    }
    return simulator.Run(draft);
  };
  const auto device = with(UpdatePlace::kDevice);
  const auto host = with(UpdatePlace::kHost);
  ASSERT_TRUE(device.ok() && host.ok()) << device.status() << host.status();
  const auto best = BestSpreadSteps(simulator, *device);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(Fits(*best));
  EXPECT_THAT(Places(best->draft), testing::AnyOf("dhdh", "hdhd"));
  EXPECT_LT(best->score.step.value, device->score.step.value * 3 / 4);
  EXPECT_LT(best->score.step.value, host->score.step.value * 3 / 4);
}

// Each worker has room for the state of one of its two layers: the other's step is the host's, and
// nothing of either moves.
TEST(SpreadSteps, LeaveToTheHostWhatHasNoRoom) {
  PlanningProblem problem = TwoSwitches();
  problem.profile.layers.insert(problem.profile.layers.end(), 4, problem.profile.layers[0]);
  for (int stage = 0; stage < 4; ++stage) {
    problem.partition.stages[static_cast<size_t>(stage)] = {2 * stage, 2 * stage + 2};
  }
  SetCapacity(problem, Bytes(1200));
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto best = BestOfTheRestOnHost(simulator, *kept);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_TRUE(Fits(*best));
  for (const StageDraft& stage : best->draft.stages) {
    EXPECT_EQ(stage.update, UpdatePlace::kHost);
    EXPECT_THAT(stage.optimizer_state,
                testing::ElementsAre(Placement::kKeep, Placement::kHostSwap));
  }
}

TEST(SpreadSteps, NeedAHostThatIsKnown) {
  PlanningProblem problem = TwoSwitches();
  problem.host_step = Nanos(0);
  DraftSimulator simulator(problem);
  const auto kept = simulator.Run(KeepingDraft(problem));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(absl::IsResourceExhausted(BestSpreadSteps(simulator, *kept).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(BestOfTheRestOnHost(simulator, *kept).status()));
}

}  // namespace
}  // namespace siphon
