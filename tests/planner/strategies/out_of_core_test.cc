// The strategies of papers on one device with a far memory: vdnn and capacity_based.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/strategies/memory_strategy.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  return found.ok() ? found->plan(problem) : found.status();
}

// Four layers on one device, two microbatches forward and then backward. A forward of a layer takes
// 8 ns, a backward 6, and its 10 bytes go out or in within 10.
PlanningProblem FourLayers() {
  PlanningProblem problem = ProblemOf({.forward = Nanos(8),
                                       .input_backward = Nanos(3),
                                       .weight_backward = Nanos(3),
                                       .saved = {{"all", Bytes(10)}}},
                                      4, LoweredSchedule("gpipe", 1, 2),
                                      WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  SetCapacity(problem, Bytes(80));
  return problem;
}

// Layers whose activations go to the host, stage after stage.
std::vector<int> SwappedLayers(const PlannedStep& planned) {
  std::vector<int> layers;
  for (const StagePlan& stage : planned.memory.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (choice.placement != Placement::kHostSwap) continue;
      for (int layer = group.layers.begin; layer < group.layers.end; ++layer) {
        layers.push_back(layer);
      }
    }
  }
  return layers;
}

// Each forward of 32 ns waits for the copy of its last layer; then each backward for the first copy
// and, layer by layer, for the slower of computing and copying: 10 + 3 * max(6, 10) + 6 = 46 ns.
//
//   F0 [0,32)   out until 48   F1 [48,80)   out until 96   B0 [96,142)   B1 [142,188)
TEST(Vdnn, TakesAForwardAndItsLastCopyThenTheSlowerOfComputingAndCopying) {
  const auto planned = PlanWith("vdnn", FourLayers());
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(SwappedLayers(*planned), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(planned->simulated.step_time, Nanos(188));
  EXPECT_EQ(Total(planned->simulated.peak[0]), Bytes(40));
  EXPECT_EQ(planned->simulated.host_peak, Bytes(80));
}

// Section time of equations 7 to 9 over rates of the link: utilisation T_proc / T_section.
TEST(Vdnn, KeepsUpWithLayersThatComputeLongerThanTheyCopy) {
  PlanningProblem problem = FourLayers();
  for (const int rate : {1, 2, 5}) {
    const int copy = 10 / rate;
    problem.topology = WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                {.to_host = kByteANano * rate, .from_host = kByteANano * rate});
    const auto planned = PlanWith("vdnn", problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    const int forward = 8 + 3 * std::max(8, copy) + copy;
    const int backward = copy + 3 * std::max(6, copy) + 6;
    EXPECT_EQ(planned->simulated.step_time, Nanos(2 * forward + 2 * backward)) << rate;
  }
}

TEST(OutOfCore, ComputesAgainWhatTheHostDoesNotTake) {
  for (const char* strategy : {"vdnn", "capacity_based"}) {
    PlanningProblem problem = FourLayers();
    SetCapacity(problem, Bytes(60));
    const auto planned = PlanWith(strategy, problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_FALSE(SwappedLayers(*planned).empty());
    for (const auto& [group, choice] : planned->memory.stages[0].groups) {
      const bool away = choice.placement == Placement::kHostSwap;
      EXPECT_EQ(choice.second_choice, away ? Placement::kRecompute : Placement::kKeep) << strategy;
    }
  }
}

TEST(Vdnn, SwapsEvenWhereEverythingFits) {
  PlanningProblem problem = FourLayers();
  problem.capacity.clear();
  const auto planned = PlanWith("vdnn", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(SwappedLayers(*planned).size(), 4u);
}

TEST(Vdnn, SaysWhatAMicrobatchStillNeeds) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(39));
  EXPECT_EQ(PlanWith("vdnn", problem).status().ToString(),
            "RESOURCE_EXHAUSTED: worker 0 needs 40 B at its fullest under vdnn, its capacity is "
            "39 B");
}

// Two layers of the first microbatch and four of the second are 60 bytes. No forward waits. A
// backward finds two layers there, 12 ns, while the first copy takes 10: the third starts at once,
// and only the last one, after 18 ns, waits for its copy, which takes until 20.
//
//   F0 [0,32)   F1 [32,64)   B0 [64,82) [84,90)   B1 [90,108) [110,116)
TEST(CapacityBased, SwapsTheEarliestLayersAsFarAsItMust) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(65));
  const auto planned = PlanWith("capacity_based", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(SwappedLayers(*planned), testing::ElementsAre(0, 1));
  EXPECT_EQ(planned->simulated.step_time, Nanos(116));
  EXPECT_EQ(Total(planned->simulated.peak[0]), Bytes(60));
}

TEST(CapacityBased, SwapsNothingWhereEverythingFits) {
  const PlanningProblem problem = FourLayers();
  const auto planned = PlanWith("capacity_based", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(SwappedLayers(*planned), testing::IsEmpty());
  EXPECT_EQ(planned->simulated.step_time, Nanos(2 * 32 + 2 * 24));
}

// Worker 0 of two has four microbatches of 20 bytes in a gpipe, worker 1 as many, and 65 bytes
// each: with room for a copy that comes early, backwards wait less than with copies that do not.
TEST(CapacityBased, BringsActivationsBackAsEarlyAsThereIsRoom) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(8),
                                       .input_backward = Nanos(3),
                                       .weight_backward = Nanos(3),
                                       .saved = {{"all", Bytes(10)}}},
                                      4, LoweredSchedule("gpipe", 2, 4), TwoLinkedDevices());
  SetCapacity(problem, Bytes(70));
  const auto early = PlanWith("capacity_based", problem);
  ASSERT_TRUE(early.ok()) << early.status();
  const auto late = PlanWith("vdnn", problem);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_LT(early->simulated.step_time, late->simulated.step_time);
  for (const MemoryByKind& peak : early->simulated.peak) EXPECT_LE(Total(peak), Bytes(70));
}

TEST(CapacityBased, SaysWhatSwappingEverythingStillNeeds) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(39));
  EXPECT_EQ(PlanWith("capacity_based", problem).status().ToString(),
            "RESOURCE_EXHAUSTED: worker 0 needs 40 B at its fullest under capacity_based, its "
            "capacity is 39 B");
}

// Faster links, shorter steps, until the step is that of a job that fits (Figure 8).
TEST(CapacityBased, ApproachesTheStepInMemoryAsTheLinkGetsFaster) {
  PlanningProblem problem = FourLayers();
  SetCapacity(problem, Bytes(45));
  Nanos before(1'000'000);
  for (const int rate : {1, 2, 5, 10}) {
    problem.topology = WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                {.to_host = kByteANano * rate, .from_host = kByteANano * rate});
    const auto planned = PlanWith("capacity_based", problem);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_LE(planned->simulated.step_time, before) << rate;
    before = planned->simulated.step_time;
  }
  EXPECT_LE(before, Nanos(2 * 32 + 2 * 24 + 8)) << "only the last layer's copies show";
}

TEST(OutOfCore, PlansAreValidOrSayThatTheyDoNotFit) {
  for (const char* schedule : {"1f1b", "gpipe", "zb_h1", "interleaved_1f1b"}) {
    for (const int capacity : {60, 120, 400}) {
      const Schedule lowered = LoweredSchedule(schedule, 2, 4);
      PlanningProblem problem = ProblemOf({.forward = Nanos(50),
                                           .input_backward = Nanos(40),
                                           .weight_backward = Nanos(30),
                                           .saved = {{"all", Bytes(10)}}},
                                          3 * StageCount(lowered), lowered, TwoLinkedDevices());
      SetCapacity(problem, Bytes(capacity));
      for (const char* strategy : {"vdnn", "capacity_based"}) {
        const auto planned = PlanWith(strategy, problem);
        if (!planned.ok()) {
          EXPECT_TRUE(absl::IsResourceExhausted(planned.status())) << planned.status();
          continue;
        }
        EXPECT_TRUE(
            ValidateSchedule(planned->schedule, SchedulePurpose::kTraining, planned->memory).ok());
        for (const MemoryByKind& peak : planned->simulated.peak) {
          EXPECT_LE(Total(peak), Bytes(capacity)) << strategy << " " << schedule;
        }
      }
    }
  }
}

}  // namespace
}  // namespace siphon
