#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/dice.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

std::string Lowered(absl::string_view program, const SwapTiming& timing = {}) {
  const TensorGroup versions{
      .kind = GroupKind::kWeightVersions, .layers = {0, 1}, .bytes = Bytes(8)};
  MemoryPlan plan;
  plan.stages = {{.groups = {{versions, {.placement = Placement::kHostSwap}}}}};
  const auto lowered = LowerMemoryPlan(ParsedSchedule(program), plan, {.timing = {timing}});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (!lowered.ok()) return "";
  const absl::Status valid = ValidateSchedule(*lowered, SchedulePurpose::kTraining, plan);
  EXPECT_TRUE(valid.ok()) << valid;
  return ToString(*lowered);
}

// The first of four stages of PipeDream. B4 comes back to the weights that UPDATE0 has made, and
// UPDATE1 replaced. Those before UPDATE0 are used right behind it.
constexpr char kPipeDream[] =
    "0F0 0F1 0F2 0F3 0B0 0UPDATE0 0F4 0B1 0UPDATE1 0F5 0B2 0UPDATE2 0F6 0B3 0UPDATE3 0B4 0UPDATE4 "
    "0B5 0UPDATE5 0B6 0UPDATE6\n";

TEST(LowerWeightVersions, CopiesThemOutWhileTheyAreTheNewestAndBackForTheirBackward) {
  EXPECT_EQ(Lowered(kPipeDream),
            "0F0 0F1 0F2 0F3 0B0 0UPDATE0 0SWAP_OUT1.0 0F4 0B1 0SWAP_OUT_END1.0 0UPDATE1 "
            "0SWAP_OUT2.0 0F5 0B2 0SWAP_OUT_END2.0 0UPDATE2 0SWAP_OUT3.0 0F6 0SWAP_IN1.0 0B3 "
            "0SWAP_OUT_END3.0 0UPDATE3 0SWAP_IN2.0 0B4 0UPDATE4 0SWAP_IN3.0 0B5 0UPDATE5 0B6 "
            "0UPDATE6\n");
}

TEST(LowerWeightVersions, GivesCopiesMoreTimeWhenTold) {
  // Version 1 is gone before the second forward behind its UPDATE; versions 0, which is back
  // before that, and 2 and 3, which have fewer behind them, before their UPDATE.
  EXPECT_EQ(Lowered(kPipeDream, {.forwards_to_leave = 2, .actions_to_come_back = 0}),
            "0SWAP_OUT0.0 0F0 0F1 0F2 0F3 0B0 0SWAP_OUT_END0.0 0UPDATE0 0SWAP_OUT1.0 0F4 "
            "0SWAP_IN0.0 0B1 0UPDATE1 0SWAP_OUT2.0 0F5 0B2 0SWAP_OUT_END2.0 0UPDATE2 "
            "0SWAP_OUT_END1.0 0SWAP_OUT3.0 0F6 0B3 0SWAP_OUT_END3.0 0UPDATE3 0SWAP_IN1.0 0B4 "
            "0UPDATE4 0SWAP_IN2.0 0B5 0UPDATE5 0SWAP_IN3.0 0B6 0UPDATE6\n");
}

TEST(LowerWeightVersions, LeavesThemWhereTheirUseFollowsTheUpdate) {
  const std::string two = "0F0 0F1 0B0 0UPDATE0 0F2 0B1 0UPDATE1 0B2 0UPDATE2\n";
  EXPECT_EQ(Lowered(two), two);
  const std::string none = "0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1\n";
  EXPECT_EQ(Lowered(none), none);
  const std::string synchronous = "0F0 0F1 0B0 0B1 0STEP\n";
  EXPECT_EQ(Lowered(synchronous), synchronous);
}

// Stages of two layers with weights of 40 and 60 bytes.
SimulationInput TwoLayersAStage(Schedule schedule) {
  const StageCost cost{.forward = Nanos(20),
                       .input_backward = Nanos(20),
                       .weight_backward = Nanos(20),
                       .step = Nanos(2),
                       .parameters = Bytes(100),
                       .stash = Bytes(20)};
  SimulationInput input = EqualStages(std::move(schedule), cost);
  const LayerCost layer{.forward = Nanos(10),
                        .input_backward = Nanos(10),
                        .weight_backward = Nanos(10),
                        .stash = Bytes(10)};
  input.layers.assign(input.stages.size(), {layer, layer});
  return input;
}

TensorGroup VersionsOf(int stage, int place) {
  return {.kind = GroupKind::kWeightVersions,
          .layers = {2 * stage + place, 2 * stage + place + 1},
          .bytes = Bytes(40 + 20 * place)};
}

// Each group of activations or versions somewhere else.
SimulationInput RandomPipeDream(uint32_t seed, LowerMemoryOptions& options) {
  Dice dice(seed);
  const int workers = dice.Roll(1, 5);
  const char* name = dice.Roll(0, 2) > 0 ? "pipedream" : "pipedream_2bw";
  Schedule schedule =
      BuildSchedule(name, {.workers = workers, .microbatches = workers * dice.Roll(1, 4)}).value();
  if (dice.Roll(0, 1) == 0) schedule = InsertCommunication(schedule).value();
  SimulationInput input = TwoLayersAStage(std::move(schedule));
  input.transport.host_rate = BytesPerSecond(dice.Roll(1, 20) * 1'000'000'000LL);
  constexpr Placement kPlaces[] = {Placement::kKeep, Placement::kHostSwap, Placement::kHostSwap,
                                   Placement::kRecompute};
  for (int stage = 0; stage < workers; ++stage) {
    StagePlan& plan = input.memory.stages.emplace_back();
    for (int place = 0; place < 2; ++place) {
      const StageRange layers{2 * stage + place, 2 * stage + place + 1};
      TensorGroup saved{.layers = layers, .bytes = Bytes(10), .recompute = Nanos(10)};
      plan.groups.push_back({saved, {.placement = kPlaces[dice.Roll(0, 3)]}});
      plan.groups.push_back({VersionsOf(stage, place), {.placement = kPlaces[dice.Roll(0, 2)]}});
    }
    options.timing.push_back(
        {.forwards_to_leave = dice.Roll(0, 3), .actions_to_come_back = dice.Roll(0, 4)});
  }
  return input;
}

Bytes MostVersions(const MemoryCurve& curve) {
  Bytes most;
  for (const MemoryPoint& point : curve) {
    EXPECT_GE(point.bytes[MemoryKind::kWeightVersions], Bytes(0));
    most = std::max(most, point.bytes[MemoryKind::kWeightVersions]);
  }
  return most;
}

// However many versions are live, a worker holds the newest and the one that is in use.
TEST(LowerWeightVersions, HoldOneStashAtATimeWhenTheyComeBackAtTheLastMoment) {
  for (const int workers : {2, 3, 4, 6}) {
    SimulationInput input = TwoLayersAStage(
        BuildSchedule("pipedream", {.workers = workers, .microbatches = 4 * workers}).value());
    LowerMemoryOptions options;
    for (int stage = 0; stage < workers; ++stage) {
      StagePlan& plan = input.memory.stages.emplace_back();
      for (int place = 0; place < 2; ++place) {
        plan.groups.push_back({VersionsOf(stage, place), {.placement = Placement::kHostSwap}});
      }
      options.timing.push_back({.forwards_to_leave = 0, .actions_to_come_back = 0});
    }
    const std::vector<int> versions = PeakWeightVersions(input.schedule);
    input.schedule = LowerMemoryPlan(input.schedule, input.memory, options).value();
    const SimulatedStep step = Simulate(input).value();
    for (int worker = 0; worker < workers; ++worker) {
      EXPECT_EQ(MostVersions(step.memory[worker]), Bytes(versions[worker] > 1 ? 100 : 0)) << worker;
    }
  }
}

TEST(LowerWeightVersions, AnyPlanOfAsynchronousSchedulesIsValidAndHoldsNoMoreVersions) {
  int moved = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    LowerMemoryOptions options;
    SimulationInput input = RandomPipeDream(seed, options);
    SimulationInput kept = input;
    for (StagePlan& stage : kept.memory.stages) stage.groups.clear();
    const auto lowered = LowerMemoryPlan(input.schedule, input.memory, options);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    input.schedule = *lowered;
    const absl::Status valid =
        ValidateSchedule(input.schedule, SchedulePurpose::kTraining, input.memory);
    ASSERT_TRUE(valid.ok()) << seed << ": " << valid;
    const auto step = Simulate(input);
    const auto before = Simulate(kept);
    ASSERT_TRUE(step.ok() && before.ok()) << seed << ": " << step.status() << before.status();
    for (size_t worker = 0; worker < step->memory.size(); ++worker) {
      const Bytes most = MostVersions(step->memory[worker]);
      EXPECT_LE(most, MostVersions(before->memory[worker])) << seed;
      moved += most < MostVersions(before->memory[worker]) ? 1 : 0;
      const MemoryByKind& left = step->memory[worker].back().bytes;
      EXPECT_EQ(Total(left), Bytes(100)) << seed;  // the parameters
    }
  }
  EXPECT_GT(moved, 5);
}

}  // namespace
}  // namespace siphon
