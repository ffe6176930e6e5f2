#include "planner/strategies/harmony/harmony_room.h"

#include <gtest/gtest.h>

#include <random>

#include "pipeline/schedules/build_schedule.h"
#include "planner/strategies/harmony/harmony_cuts.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two workers with two stages each, all of one layer: 100 bytes of parameters, 100 of gradients,
// 200 of optimizer state, and 30 saved for each of three microbatches.
PlanningProblem FourStages(Bytes capacity) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(10),
                                       .input_backward = Nanos(10),
                                       .weight_backward = Nanos(10),
                                       .optimizer = Nanos(1),
                                       .parameters = Bytes(100),
                                       .gradients = Bytes(100),
                                       .optimizer_state = Bytes(200),
                                       .boundary = Bytes(1),
                                       .saved = {{"all", Bytes(30)}}},
                                      4, LoweredSchedule("1f1b", 2, 3), TwoLinkedDevices());
  problem.schedule =
      InsertCommunication(
          BuildSchedule("harmony_pp", {.workers = 2, .chunks = 2, .microbatches = 3}).value())
          .value();
  problem.partition.stages = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  SetCapacity(problem, capacity);
  return problem;
}

Bytes ExcessOf(HarmonyAway away, Placement activations, int capacity) {
  const PlanningProblem problem = FourStages(Bytes(capacity));
  return LeastExcess(problem, StageCosts(problem.profile, problem.partition),
                     {.away = away, .activations = activations});
}

TEST(HarmonyRoom, CountsWhatIsKeptAndTheStageThatSteps) {
  // 2 (100 + 100 + 200) of weights, 2 x 3 x 30 of activations.
  EXPECT_EQ(ExcessOf(HarmonyAway::kNothing, Placement::kKeep, 900), Bytes(80));
  EXPECT_EQ(ExcessOf(HarmonyAway::kNothing, Placement::kRecompute, 700), Bytes(100));
  // 400 kept, 200 of state for a step, which is more than 180.
  EXPECT_EQ(ExcessOf(HarmonyAway::kOptimizerState, Placement::kKeep, 500), Bytes(100));
  EXPECT_EQ(ExcessOf(HarmonyAway::kParameters, Placement::kKeep, 500), Bytes(0));
  EXPECT_EQ(ExcessOf(HarmonyAway::kGradients, Placement::kKeep, 300), Bytes(100));
  EXPECT_EQ(ExcessOf(HarmonyAway::kGradients, Placement::kKeep, 0), Bytes(0));  // no limit
}

// What it says cannot fit does not.
TEST(HarmonyRoom, IsNeverMoreThanAPlanTakes) {
  std::mt19937 random(3);
  const auto roll = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  int hopeless = 0;
  int fitting = 0;
  for (int instance = 0; instance < 300; ++instance) {
    SCOPED_TRACE(instance);
    HarmonyChoice choice{
        .shape = {.workers = 2,
                  .chunks = roll(3),
                  .microbatches = 4,
                  .options = {.microbatch_group = 1 << (roll(3) - 1),
                              .backward_group = 1 << (roll(3) - 1)}},
        .away = static_cast<HarmonyAway>(roll(4) - 1),
        .activations = roll(2) == 1 ? Placement::kKeep : Placement::kRecompute,
        .updates = roll(2) == 1 ? HarmonyUpdates::kWholeStage : HarmonyUpdates::kByLayer,
        .buffers = {.passes_ahead = roll(3) - 1, .steps_ahead = roll(3) - 1}};
    PlanningProblem problem = FourStages(Bytes(0));
    problem.profile.layers.resize(static_cast<size_t>(2 * choice.shape.chunks + roll(3)),
                                  problem.profile.layers[0]);
    for (LayerProfile& layer : problem.profile.layers) {
      layer.parameters = layer.gradients = Bytes(10 * roll(20));
      layer.optimizer_state = Bytes(10 * roll(40));
      layer.saved[0].bytes = Bytes(roll(60));
    }
    problem.schedule =
        InsertCommunication(BuildSchedule("harmony_pp", choice.shape).value()).value();
    problem.partition = choice.partition =
        HarmonyCutter(problem.profile, {.count = 2}).ByBytes(2 * choice.shape.chunks);
    SetCapacity(problem, Bytes(100 * (2 + roll(20))));
    const Bytes excess =
        LeastExcess(problem, StageCosts(problem.profile, problem.partition), choice);
    const auto planned = PlanHarmony(problem, choice);
    hopeless += excess > Bytes(0);
    fitting += planned.ok();
    if (excess > Bytes(0)) {
      EXPECT_TRUE(absl::IsResourceExhausted(planned.status()));
    }
  }
  EXPECT_GT(hopeless, 30);
  EXPECT_GT(fitting, 30);
}

}  // namespace
}  // namespace siphon
