#include "planner/strategies/harmony/harmony_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/strategies/harmony/harmony_cuts.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

const HarmonyTools kTools{.build_schedule = BuildSchedule};

// `layers` layers of 100 bytes of parameters, as many of gradients, and 10 of activations, on two
// devices whose host link takes a byte a nanosecond.
PlanningProblem TwoDevices(int layers, int microbatches) {
  return ProblemOf({.forward = Nanos(100),
                    .input_backward = Nanos(100),
                    .weight_backward = Nanos(100),
                    .optimizer = Nanos(10),
                    .parameters = Bytes(100),
                    .gradients = Bytes(100),
                    .boundary = Bytes(1),
                    .saved = {{"all", Bytes(10)}}},
                   layers, LoweredSchedule("1f1b", 2, microbatches), TwoLinkedDevices());
}

HarmonyPlan Searched(const PlanningProblem& problem) {
  auto plan = SearchHarmony(problem, kTools);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : HarmonyPlan{};
}

constexpr int kDevices = 2;

// Harmony-PP as its Figure 4 has it, or Harmony-DP, but with so many layers a device: each a pack,
// all microbatches through a pack before the next. Of all devices.
Bytes WeightBytes(const std::string& name, int chunks, int microbatches, int group) {
  const Schedule schedule =
      InsertCommunication(BuildSchedule(name, {.workers = kDevices,
                                               .chunks = chunks,
                                               .microbatches = microbatches,
                                               .options = {.microbatch_group = group}})
                              .value())
          .value();
  MemoryPlan plan;
  for (int stage = 0; stage < kDevices * chunks; ++stage) {
    plan.stages.push_back(
        {.groups = {
             {{.kind = GroupKind::kParameters, .layers = {stage, stage + 1}, .bytes = Bytes(100)},
              {.placement = Placement::kHostSwap}}}});
  }
  LowerMemoryOptions options;
  options.timing.assign(plan.stages.size(), {.actions_to_come_back = 0});
  const auto lowered = LowerMemoryPlan(schedule, plan, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(ValidateSchedule(*lowered, SchedulePurpose::kTraining, plan), absl::OkStatus());
  return BytesMoved(*lowered, plan, GroupKind::kParameters) * lowered->replicas;
}

// In once forward and once backward, out once when they have been updated: 3 |W|, whatever the
// number of microbatches, of which each worker's last pack, which stays in between, saves one.
TEST(Harmony, MovesThriceItsWeightsLessWhatStays) {
  for (const int chunks : {2, 3, 5, 8}) {
    const int weights = kDevices * chunks * 100;
    for (const int microbatches : {2, 4, 7}) {
      SCOPED_TRACE(testing::Message() << chunks << " layers a device, " << microbatches);
      EXPECT_EQ(WeightBytes("harmony_pp", chunks, microbatches, 0),
                Bytes(3 * weights - kDevices * 100));
      // Every device has all weights, and moves them: 3 N |W|.
      EXPECT_EQ(WeightBytes("harmony_dp", chunks, microbatches, 0),
                Bytes(kDevices * (3 * weights - 100)));
    }
  }
}

// Without input-batch grouping, in for each microbatch: (2 m + 1) |W| less what stays: the last
// pack's while one microbatch follows the other there.
TEST(Harmony, MovesMoreWhereMicrobatchesGoOneByOne) {
  const Bytes grouped = WeightBytes("harmony_pp", 8, 4, 0);
  const Bytes by_two = WeightBytes("harmony_pp", 8, 4, 2);
  const Bytes one_by_one = WeightBytes("harmony_pp", 8, 4, 1);
  EXPECT_GT(by_two, grouped);
  EXPECT_GT(one_by_one, by_two);
  EXPECT_LE(one_by_one, Bytes((2 * 4 + 1) * 16 * 100));
}

TEST(HarmonySearch, KeepsEverythingWhereItFits) {
  const HarmonyPlan plan = Searched(TwoDevices(4, 4));
  EXPECT_EQ(plan.choice.away, HarmonyAway::kNothing);
  EXPECT_EQ(plan.choice.activations, Placement::kKeep);
  for (const StagePlan& stage : plan.planned.memory.stages) {
    for (const PlannedGroup& group : stage.groups) {
      EXPECT_EQ(group.choice.placement, Placement::kKeep);
    }
  }
}

// Four layers' weights a device are 800 bytes: with less, packs' parameters and gradients leave.
TEST(HarmonySearch, SendsAwayAsMuchAsItMust) {
  PlanningProblem problem = TwoDevices(8, 2);
  Bytes before(-1);
  for (const int capacity : {2000, 900, 720, 520}) {
    SetCapacity(problem, Bytes(capacity));
    const HarmonyPlan plan = Searched(problem);
    const Schedule& schedule = plan.planned.schedule;
    EXPECT_EQ(ValidateSchedule(schedule, SchedulePurpose::kTraining, plan.planned.memory),
              absl::OkStatus());
    for (const MemoryByKind& peak : plan.planned.simulated.peak) {
      EXPECT_LE(Total(peak), Bytes(capacity));
    }
    const Bytes moved = BytesMoved(schedule, plan.planned.memory, GroupKind::kParameters) +
                        BytesMoved(schedule, plan.planned.memory, GroupKind::kGradients);
    EXPECT_GE(moved, before) << capacity;
    before = moved;
  }
  EXPECT_GT(before, Bytes(0));
}

// No shape of packs and groups that one names is faster than what the search finds.
TEST(HarmonySearch, GivesWhatIsAwayASecondChoice) {
  PlanningProblem problem = TwoDevices(8, 4);
  problem.topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  SetCapacity(problem, Bytes(500));  // of 800 bytes of weights
  int swapped = 0;
  for (const StagePlan& stage : Searched(problem).planned.memory.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (!IsSwap(choice.placement)) continue;
      ++swapped;
      EXPECT_EQ(choice.second_choice, group.kind == GroupKind::kActivations ? Placement::kRecompute
                                                                            : Placement::kNvmeSwap);
    }
  }
  EXPECT_GT(swapped, 0);
}

TEST(HarmonySearch, IsNoSlowerThanAnyShapeWithEverythingKept) {
  const PlanningProblem problem = TwoDevices(4, 4);
  const HarmonyPlan plan = Searched(problem);
  for (const int chunks : {1, 2}) {
    for (const int group : {1, 2, 4}) {
      for (const int pack : {1, 2}) {
        if (pack > chunks) continue;
        PlanningProblem other = problem;
        other.schedule = InsertCommunication(
                             BuildSchedule("harmony_pp", {.workers = 2,
                                                          .chunks = chunks,
                                                          .microbatches = 4,
                                                          .options = {.forward_pack = pack,
                                                                      .backward_pack = pack,
                                                                      .microbatch_group = group}})
                                 .value())
                             .value();
        other.partition.stages.clear();
        for (int stage = 0; stage < 2 * chunks; ++stage) {
          other.partition.stages.push_back(
              {4 * stage / (2 * chunks), 4 * (stage + 1) / (2 * chunks)});
        }
        const auto simulated =
            Simulate(SimulationOf(other, IdentityMapping(2), {}, other.schedule));
        ASSERT_TRUE(simulated.ok()) << simulated.status();
        EXPECT_LE(plan.planned.simulated.step_time, simulated->step_time);
      }
    }
  }
}

// What was found with the same group forward and backward instead.
absl::StatusOr<PlannedStep> WithGroupsAlike(const HarmonyPlan& plan, int group) {
  HarmonyChoice alike = plan.choice;
  alike.shape.options.microbatch_group = alike.shape.options.backward_group = group;
  PlanningProblem problem = plan.problem;
  problem.schedule = InsertCommunication(BuildSchedule("harmony_pp", alike.shape).value()).value();
  return PlanHarmony(problem, alike);
}

// Four layers on one device, each a stage whose weights are there only while it runs; four
// microbatches, and 50 bytes between two stages for each. Backward a stage has its parameters and
// its gradients, and the gradients of the one before are still on their way out: 100 + 100 + 100,
// what two stages exchange for the microbatch that runs, 2 x 50, and the 15 activations that are
// left: 415. With two microbatches in a group that is 3 x 50 and 14: 464. Forward it has parameters
// alone: all four may go through it before the next one, 100 + 5 x 50 and 16 activations at most.
TEST(HarmonySearch, GroupsBackwardApartWhereGradientsFillTheDevice) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(100),
                                       .input_backward = Nanos(100),
                                       .weight_backward = Nanos(100),
                                       .optimizer = Nanos(10),
                                       .parameters = Bytes(100),
                                       .gradients = Bytes(100),
                                       .boundary = Bytes(50),
                                       .saved = {{"all", Bytes(1)}}},
                                      4, LoweredSchedule("1f1b", 1, 4),
                                      WithHost(UniformTopology(1, kByteANano, Nanos(0)), 1,
                                               {.to_host = kByteANano, .from_host = kByteANano}));
  SetCapacity(problem, Bytes(440));
  const HarmonyPlan plan = Searched(problem);
  EXPECT_EQ(plan.choice.shape.chunks, 4);
  EXPECT_EQ(plan.choice.shape.options.microbatch_group, 4);
  EXPECT_EQ(plan.choice.shape.options.backward_group, 1);
  EXPECT_EQ(Total(plan.planned.simulated.peak[0]), Bytes(415));

  // With groups alike: of more than one microbatch they do not fit, and one by one each layer's
  // parameters come in for three more groups forward, 100 each time.
  for (const int group : {1, 2, 4}) {
    const auto planned = WithGroupsAlike(plan, group);
    ASSERT_EQ(planned.ok(), group == 1) << planned.status();
    if (!planned.ok()) continue;
    EXPECT_EQ(planned->simulated.step_time, plan.planned.simulated.step_time + Nanos(4 * 3 * 100));
  }
}

// Two devices, four such layers each and eight microbatches: too many combinations to try all.
// Forward four of a group wait for the next pack, 100 + 8 x 50 and 20 activations; eight would take
// 875. Backward two take 480, and four 670.
TEST(HarmonySearch, GroupsApartWhereThereAreManyShapes) {
  PlanningProblem problem = TwoDevices(8, 8);
  for (LayerProfile& layer : problem.profile.layers) {
    layer.boundary = Bytes(50);
    layer.saved[0].bytes = Bytes(1);
  }
  SetCapacity(problem, Bytes(540));
  const HarmonyPlan plan = Searched(problem);
  EXPECT_EQ(plan.choice.shape.options.microbatch_group, 4);
  EXPECT_EQ(plan.choice.shape.options.backward_group, 2);
  EXPECT_EQ(Total(plan.planned.simulated.peak[0]), Bytes(520));
  EXPECT_EQ(Total(plan.planned.simulated.peak[1]), Bytes(480));
  for (const int group : {1, 2, 4, 8}) {
    const auto planned = WithGroupsAlike(plan, group);
    ASSERT_EQ(planned.ok(), group <= 2) << planned.status();
    if (!planned.ok()) continue;
    EXPECT_GT(planned->simulated.step_time, plan.planned.simulated.step_time);
  }
}

TEST(HarmonySearch, SaysWhenNothingFits) {
  PlanningProblem problem = TwoDevices(4, 2);
  SetCapacity(problem, Bytes(150));
  EXPECT_THAT(SearchHarmony(problem, kTools).status().ToString(),
              testing::AllOf(testing::HasSubstr("RESOURCE_EXHAUSTED: of "),
                             testing::HasSubstr("none fits; the smallest lacks ")));
}

TEST(HarmonySearch, NeedsALayerForEachWorker) {
  PlanningProblem problem = TwoDevices(4, 2);
  problem.profile.layers.resize(1);
  EXPECT_EQ(SearchHarmony(problem, kTools).status().ToString(),
            "INVALID_ARGUMENT: harmony has 1 layers for 2 workers");
}

// Bytes in the first layers, time in the last ones.
TEST(HarmonySearch, IsNoSlowerThanCutsByTimeOrBytesAlone) {
  for (const int capacity : {1000, 1400, 2000}) {
    PlanningProblem problem = TwoDevices(6, 2);
    for (int layer = 0; layer < 6; ++layer) {
      problem.profile.layers[layer].parameters = Bytes(300 - 50 * layer);
      problem.profile.layers[layer].forward = Nanos(50 + 60 * layer);
    }
    SetCapacity(problem, Bytes(capacity));
    const HarmonyPlan plan = Searched(problem);
    HarmonyCutter cutter(problem.profile, {.count = 2});
    int fitting = 0;
    for (const int chunks : {1, 2, 3}) {
      for (const auto& partition : {cutter.ByTime(2 * chunks), cutter.ByBytes(2 * chunks)}) {
        for (const int group : {1, 2}) {
          for (const int away : {1, 2, 3}) {
            for (const int ahead : {0, 1}) {
              for (const Placement activations : {Placement::kKeep, Placement::kRecompute}) {
                HarmonyChoice choice{.shape = {.workers = 2,
                                               .chunks = chunks,
                                               .microbatches = 2,
                                               .options = {.microbatch_group = group}},
                                     .partition = partition,
                                     .away = static_cast<HarmonyAway>(away),
                                     .activations = activations,
                                     .buffers = {.passes_ahead = ahead, .steps_ahead = ahead}};
                PlanningProblem other = problem;
                other.partition = partition;
                other.schedule =
                    InsertCommunication(BuildSchedule("harmony_pp", choice.shape).value()).value();
                const auto planned = PlanHarmony(other, choice);
                if (!planned.ok()) continue;
                ++fitting;
                EXPECT_LE(plan.planned.simulated.step_time, planned->simulated.step_time);
              }
            }
          }
        }
      }
    }
    EXPECT_GT(fitting, 0) << capacity;
  }
}

// Unequal layers: the stages that it picks are in order and complete.
TEST(HarmonySearch, CutsAllLayersIntoStages) {
  PlanningProblem problem = TwoDevices(7, 2);
  for (int layer = 0; layer < 7; ++layer) {
    problem.profile.layers[layer].parameters = Bytes(100 + 400 * (layer == 0));
    problem.profile.layers[layer].forward = Nanos(50 + 30 * layer);
  }
  SetCapacity(problem, Bytes(1100));
  const HarmonyPlan plan = Searched(problem);
  int next = 0;
  for (const StageRange& stage : plan.choice.partition.stages) {
    EXPECT_EQ(stage.begin, next);
    EXPECT_GT(stage.end, stage.begin);
    next = stage.end;
  }
  EXPECT_EQ(next, 7);
}

}  // namespace
}  // namespace siphon
