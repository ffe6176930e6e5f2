#include "launch/profile/fall_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/profile/budget_second_choices.h"
#include "launch/profile/host_use.h"
#include "launch/profile/lend_second_choices.h"
#include "planner/steps_on_host.h"
#include "planner/topology.h"
#include "planner/validate_schedule.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr int kWorkers = 3;

// 1F1B of six microbatches, four layers of 1,000 bytes of activations a worker. Worker 0 has three
// microbatches alive at once, worker 2 one. With nothing away worker 0 takes the most.
PlanningProblem Problem() {
  PlanningProblem problem;
  for (int layer = 0; layer < 12; ++layer) {
    problem.profile.layers.push_back({.name = "layer",
                                      .forward = Nanos(1000),
                                      .input_backward = Nanos(1000),
                                      .weight_backward = Nanos(1000),
                                      .boundary = Bytes(100),
                                      .saved = {{.name = "x", .bytes = Bytes(1000)}}});
  }
  problem.partition.stages = {{0, 4}, {4, 8}, {8, 12}};
  problem.schedule = *ParseSchedule(
      "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0F5 0B3 0B4 0B5 0STEP\n"
      "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1F5 1B4 1B5 1STEP\n"
      "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2STEP\n");
  problem.topology = WithHost(
      UniformTopology(kWorkers, BytesPerSecond(20'000'000'000), Nanos(0)), kWorkers,
      {.to_host = BytesPerSecond(20'000'000'000), .from_host = BytesPerSecond(20'000'000'000)});
  problem.capacity.assign(kWorkers, Bytes(11'500));  // worker 0 alone would need 13,000 or so
  problem.granule = Bytes(64);
  problem.held.resize(kWorkers);
  return problem;
}

LiveStep Live(const PlanningProblem& problem, const std::string& strategy) {
  auto live = PlanLiveStep(problem, FindMemoryStrategy(strategy).value());
  EXPECT_TRUE(live.ok()) << live.status();
  return *std::move(live);
}

// Nobody but worker 0 may hold more than it does.
LiveStep WithoutSpareMemory(LiveStep live) {
  for (int worker = 1; worker < kWorkers; ++worker) {
    live.problem.capacity[worker] = Total(live.step.simulated.peak[worker]);
  }
  return live;
}

std::vector<Placement> SecondChoicesOf(const MemoryPlan& plan) {
  std::vector<Placement> choices;
  for (const StagePlan& stage : plan.stages) {
    for (const PlannedGroup& planned : stage.groups) {
      if (IsSwap(planned.choice.placement)) choices.push_back(planned.choice.second_choice);
    }
  }
  return choices;
}

MemoryPlan Budgeted(const LiveStep& live, Bytes to_recompute = Bytes(0)) {
  std::vector<MemoryByKind> held = live.problem.held;
  for (MemoryByKind& worker : held) worker[MemoryKind::kWorkspace] += to_recompute;
  const auto plan = BudgetSecondChoices(live, held);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->memory : MemoryPlan();
}

TEST(BudgetSecondChoices, LeaveRoomOnTheHostOrGoAnotherWay) {
  LiveStep live = Live(Problem(), "d2d_swap");
  ASSERT_THAT(SecondChoicesOf(live.step.memory), testing::Each(Placement::kHostSwap));
  ASSERT_FALSE(SecondChoicesOf(live.step.memory).empty());
  EXPECT_EQ(Budgeted(live), live.step.memory);
  // All that is with lenders, slot by slot.
  Bytes parked;
  for (const auto& [group, slots] : live.parking[0].slots) {
    parked += Bytes(1024) * static_cast<int64_t>(slots.size());  // a layer each: 1,000 bytes
    EXPECT_EQ(slots.front().pieces.empty(), false);
  }
  live.problem.topology.host_memory = parked;
  EXPECT_EQ(Budgeted(live), live.step.memory);
  live.problem.topology.host_memory = parked - Bytes(1);
  EXPECT_THAT(SecondChoicesOf(Budgeted(live)), testing::Each(Placement::kRecompute));
}

TEST(BudgetSecondChoices, AreNoneWhereComputingAgainTakesMoreThanThereIs) {
  const LiveStep live = WithoutSpareMemory(Live(Problem(), "host_swap"));
  ASSERT_THAT(SecondChoicesOf(live.step.memory), testing::Each(Placement::kRecompute));
  EXPECT_EQ(Budgeted(live), live.step.memory);
  EXPECT_THAT(SecondChoicesOf(Budgeted(live, Bytes(12'000))), testing::Each(Placement::kKeep));
}

// Whatever a worker leaves: its groups are elsewhere, all others where they were.
TEST(FallBack, MovesWhatIsThereAndNothingElse) {
  for (const char* strategy : {"d2d_swap", "host_swap", "auto"}) {
    SCOPED_TRACE(strategy);
    const LiveStep live = Live(Problem(), strategy);
    const PlanInForce before{{Budgeted(live), live.step.schedule}, live.parking};
    int left_places = 0;
    for (int worker = 0; worker < kWorkers; ++worker) {
      for (const auto& [place, bytes] : live.parking[worker].bytes) {
        const LeftPlace left{WorkerId(worker), place};
        EXPECT_TRUE(ParksAt(before, left));
        const auto after = FallBack(before, left, WithoutSecondChoice::kRefuse);
        ASSERT_TRUE(after.ok()) << after.status();
        ++left_places;
        EXPECT_FALSE(ParksAt(after->now, left));
        EXPECT_FALSE(after->moved.empty());
        const absl::Status valid = ValidateSchedule(
            after->now.plan.schedule, SchedulePurpose::kTraining, after->now.plan.memory);
        EXPECT_TRUE(valid.ok()) << valid;
        for (int other = 0; other < kWorkers; ++other) {
          if (other == worker) continue;
          EXPECT_EQ(after->now.parking[other], before.parking[other]);
          EXPECT_EQ(after->now.plan.schedule.programs[other], before.plan.schedule.programs[other]);
        }
        // Nothing is left to move.
        const auto again = FallBack(after->now, left, WithoutSecondChoice::kRefuse);
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(again->now, after->now);
      }
    }
    EXPECT_GT(left_places, 0);
  }
}

TEST(FallBack, RefusesOrGoesOnWhereThereIsNoSecondChoice) {
  const LiveStep live = WithoutSpareMemory(Live(Problem(), "host_swap"));
  PlanInForce before{{Budgeted(live, Bytes(12'000)), live.step.schedule}, live.parking};
  const LeftPlace left{WorkerId(0), {.tier = Placement::kHostSwap}};
  const auto refused = FallBack(before, left, WithoutSecondChoice::kRefuse);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("of stage 0, group"));
  const auto stays = FallBack(before, left, WithoutSecondChoice::kStay);
  ASSERT_TRUE(stays.ok()) << stays.status();
  EXPECT_EQ(stays->now, before);
  EXPECT_TRUE(stays->moved.empty());
}

// It has no slot to leave, and no second choice.
TEST(FallBack, LeavesWhatTheHostStepsWhereItIs) {
  const LiveStep live = Live(Problem(), "host_swap");
  PlanInForce before{{Budgeted(live), live.step.schedule}, live.parking};
  StagePlan& stage = before.plan.memory.stages[0];
  stage.update = UpdatePlace::kHost;
  stage.groups.push_back(
      {{.kind = GroupKind::kOptimizerState, .layers = {0, 1}, .bytes = Bytes(100)},
       {.placement = Placement::kHostSwap}});
  const LeftPlace left{WorkerId(0), {.tier = Placement::kHostSwap}};
  ASSERT_TRUE(ParksAt(before, left));
  const auto after = FallBack(before, left, WithoutSecondChoice::kRefuse);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_FALSE(ParksAt(after->now, left));
  EXPECT_EQ(after->now.plan.memory.stages[0].groups.back(), stage.groups.back());
}

// Layer 0 of worker 0 steps on the host, its parameters are parked there; all else is with it, too.
PlanInForce WithAStepOnTheHost(const LiveStep& live, Placement second) {
  PlanInForce plan{{Budgeted(live), live.step.schedule}, live.parking};
  StagePlan& stage = plan.plan.memory.stages[0];
  stage.update = UpdatePlace::kHost;
  for (const GroupKind kind : {GroupKind::kOptimizerState, GroupKind::kParameters}) {
    stage.groups.push_back({{.kind = kind, .layers = {0, 1}, .bytes = Bytes(100)},
                            {.placement = Placement::kHostSwap, .second_choice = second}});
  }
  const GroupId parameters(static_cast<int>(stage.groups.size()) - 1);
  WorkerParking& parking = plan.parking[0];
  Bytes& there = parking.bytes.at({.tier = Placement::kHostSwap});
  parking.slots[{StageId(0), parameters}] = {
      {{{{.tier = Placement::kHostSwap}, there, Bytes(100)}}}};
  there += Bytes(128);
  return plan;
}

// What the host works on keeps its slots, in a file; the rest leaves.
TEST(FallBack, LeavesTheHostsRoomForStepsToTheDrive) {
  const LiveStep live = Live(Problem(), "host_swap");
  const PlanInForce before = WithAStepOnTheHost(live, Placement::kNvmeSwap);
  const LeftPlace left{WorkerId(0), {.tier = Placement::kHostSwap}};
  const auto after = FallBack(before, left, WithoutSecondChoice::kRefuse);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->moved.at(Placement::kNvmeSwap), 1);
  EXPECT_GT(after->moved.at(Placement::kRecompute), 0);
  EXPECT_TRUE(after->now.parking[0].host_on_drive);
  EXPECT_FALSE(after->now.parking[1].host_on_drive);
  EXPECT_EQ(after->now.parking[0].slots.size(), 1u);
  const auto& slot = *after->now.parking[0].slots.begin();
  EXPECT_EQ(slot.second, before.parking[0].slots.at(slot.first));
  const StagePlan& stage = after->now.plan.memory.stages[0];
  EXPECT_EQ(stage.groups.back().choice, (GroupChoice{.placement = Placement::kHostSwap}));
  EXPECT_TRUE(StepsOnHost(stage, 0));
  // Another place that is left later changes nothing of that.
  const auto again = FallBack(after->now, {WorkerId(0), {Placement::kPeerSwap, DeviceId(1)}},
                              WithoutSecondChoice::kRefuse);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->now, after->now);
  // There is no faster way to the host's memory.
  const auto slow = FallBack(before, left, WithoutSecondChoice::kStay);
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_FALSE(slow->moved.contains(Placement::kNvmeSwap));
  EXPECT_FALSE(slow->now.parking[0].host_on_drive);
}

TEST(StepOnDrive, IsForStateWithThatSecondChoice) {
  const LiveStep live = Live(Problem(), "host_swap");
  const PlanInForce before = WithAStepOnTheHost(live, Placement::kNvmeSwap);
  const auto after = StepOnDrive(before, WorkerId(0));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->moved, (std::map<Placement, int>{{Placement::kNvmeSwap, 1}}));
  EXPECT_EQ(after->now.steps_on_drive, std::set<WorkerId>{WorkerId(0)});
  EXPECT_EQ(after->now.parking, before.parking);
  EXPECT_EQ(after->now.plan.schedule, before.plan.schedule);
  const auto stays = FallBack(after->now, {WorkerId(1), {.tier = Placement::kHostSwap}},
                              WithoutSecondChoice::kStay);
  ASSERT_TRUE(stays.ok()) << stays.status();
  EXPECT_EQ(stays->now.steps_on_drive, after->now.steps_on_drive);
  const auto without = StepOnDrive(WithAStepOnTheHost(live, Placement::kKeep), WorkerId(0));
  EXPECT_THAT(std::string(without.status().message()),
              HasSubstr("optimizer_state of stage 0, group "));
  const auto nothing = StepOnDrive(before, WorkerId(1));
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr("no group of worker 1 steps"));
}

// All that the host has of the worker, and none of it on the drive before.
TEST(BudgetSecondChoices, HaveRoomOnTheDriveForStepsOnTheHost) {
  PlanningProblem problem = Problem();
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(500);
  problem.topology.drives = {
      {.read = BytesPerSecond(1'000'000'000), .write = BytesPerSecond(1'000'000'000)}};
  problem.capacity.assign(kWorkers, Bytes(14'000));
  problem.host_step = Nanos(2000);
  LiveStep live = Live(problem, "optimizer_offload");
  ASSERT_GT(live.host_steps[0], Bytes(0));
  const std::vector<Bytes> rooms =
      HostRoomsForDrives({live.step.memory, live.step.schedule}, live.parking, live.host_steps);
  EXPECT_EQ(rooms, live.host_steps);
  Bytes room;
  for (const Bytes& of_worker : rooms) room += of_worker;
  const auto seconds = [&](Bytes capacity) {
    live.problem.topology.drives = {{.capacity = capacity}};
    return SecondChoicesOf(Budgeted(live));
  };
  EXPECT_THAT(seconds(Bytes(0)), testing::Each(Placement::kNvmeSwap));  // no limit
  EXPECT_THAT(seconds(room), testing::Each(Placement::kNvmeSwap));
  EXPECT_THAT(seconds(room - Bytes(1)), testing::Contains(Placement::kKeep));
  live.problem.topology.drives.clear();
  EXPECT_THAT(SecondChoicesOf(Budgeted(live)), testing::Each(Placement::kKeep));
}

// What ranks read of the plan.
PlanText TextOf(const LiveStep& live, const MemoryPlan& plan) {
  PlanText text;
  text.memory = plan;
  text.training = live.step.schedule;
  text.topology = live.problem.topology;
  text.mapping = live.step.mapping;
  for (const Bytes capacity : live.problem.capacity) text.workers.push_back({.capacity = capacity});
  text.predicted.peak = TotalPeaks(live.step.simulated);
  return text;
}

// Where nothing can be computed again, and there is no drive.
TEST(BudgetSecondChoices, GoToLendersWhereNothingElseIsThere) {
  const LiveStep live = Live(Problem(), "host_swap");
  LiveStep ample = live;
  ample.problem.capacity = {live.problem.capacity[0], Bytes(0), Bytes(30'000)};
  const MemoryPlan plan = Budgeted(ample, Bytes(12'000));
  ASSERT_THAT(SecondChoicesOf(plan), testing::Each(Placement::kPeerSwap));
  ASSERT_FALSE(SecondChoicesOf(plan).empty());
  const PlanText text = TextOf(ample, plan);
  const SecondLending second = SecondLendingOf(text, live.parking);
  ASSERT_FALSE(second.stripes.empty());
  const Bytes on_host = HostBytes(live.parking);
  EXPECT_EQ(HostBytes(second.at_most), on_host);
  EXPECT_GE(LentBytes(second.at_most, DeviceId(1)) + LentBytes(second.at_most, DeviceId(2)),
            on_host);
  const PlanInForce before{{plan, live.step.schedule}, live.parking};
  const LeftPlace left{WorkerId(0), {.tier = Placement::kHostSwap}};
  EXPECT_FALSE(FallBack(before, left, WithoutSecondChoice::kRefuse).ok()) << "nobody says where";
  const auto after = FallBack(before, left, WithoutSecondChoice::kRefuse, second.stripes);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(HostBytes(after->now.parking), Bytes(0));
  EXPECT_EQ(after->now.plan.schedule, live.step.schedule) << "programs stay";
  for (const DeviceId lender : {DeviceId(1), DeviceId(2)}) {
    EXPECT_LE(LentBytes(after->now.parking, lender), LentBytes(second.at_most, lender));
  }
  EXPECT_TRUE(
      ValidateSchedule(after->now.plan.schedule, SchedulePurpose::kTraining, after->now.plan.memory)
          .ok());
}

// Worker 1 swaps, too, and computes that again where the host refuses. What it then has free takes
// what worker 0, which cannot, has on the host. Nobody else lends.
TEST(BudgetSecondChoices, GoToLendersThatMayHaveToComputeAgain) {
  PlanningProblem tight = Problem();
  tight.capacity[1] = Bytes(6'500);
  LiveStep live = Live(tight, "host_swap");
  live.problem.capacity[1] = Bytes(30'000);
  live.problem.capacity[2] = Total(live.step.simulated.peak[2]);
  constexpr Bytes kToRecompute(5'000);
  std::vector<MemoryByKind> held = live.problem.held;
  held[0][MemoryKind::kWorkspace] += Bytes(12'000);
  held[1][MemoryKind::kWorkspace] += kToRecompute;
  const auto budgeted = BudgetSecondChoices(live, held);
  ASSERT_TRUE(budgeted.ok()) << budgeted.status();
  const auto choices_of = [&](int stage) {
    MemoryPlan one;
    one.stages.push_back(budgeted->memory.stages[stage]);
    return SecondChoicesOf(one);
  };
  ASSERT_THAT(choices_of(0), testing::Each(Placement::kPeerSwap));
  ASSERT_THAT(choices_of(1), testing::Each(Placement::kRecompute));
  ASSERT_FALSE(choices_of(0).empty());
  ASSERT_FALSE(choices_of(1).empty());
  const std::vector<Bytes> peaks = TotalPeaks(live.step.simulated);
  EXPECT_EQ(budgeted->peak_at_most[0], peaks[0]);
  EXPECT_GT(budgeted->peak_at_most[1], peaks[1]);

  PlanText text = TextOf(live, budgeted->memory);
  text.predicted.peak_at_most = budgeted->peak_at_most;
  const SecondLending second = SecondLendingOf(text, live.parking);
  const Bytes lent = LentBytes(second.at_most, DeviceId(1));
  EXPECT_GT(lent, Bytes(0));
  EXPECT_EQ(LentBytes(second.at_most, DeviceId(2)), Bytes(0));
  // It needs room for that, whatever else it does, and for what cache lines round up.
  const Bytes needed = budgeted->peak_at_most[1] + lent;
  live.problem.capacity[1] = needed + Bytes(6 * 2 * 64);
  EXPECT_EQ(BudgetSecondChoices(live, held)->memory, budgeted->memory);
  live.problem.capacity[1] = needed - Bytes(1);
  EXPECT_NE(BudgetSecondChoices(live, held)->memory, budgeted->memory);
}

}  // namespace
}  // namespace siphon
