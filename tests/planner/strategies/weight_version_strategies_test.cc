#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_plan.h"
#include "planner/simulator/simulate.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/mpress/mpress_assign.h"
#include "planner/strategies/mpress/mpress_times.h"
#include "planner/validate_schedule.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  if (!found.ok()) return found.status();
  return found->plan(problem);
}

// Groups that go somewhere: "weight_versions 0-1 host_swap".
std::vector<std::string> Choices(const PlannedStep& planned) {
  std::vector<std::string> texts;
  for (const StagePlan& stage : planned.memory.stages) {
    for (const auto& [group, choice] : stage.groups) {
      if (choice.placement == Placement::kKeep) continue;
      texts.push_back(absl::StrCat(GroupKindName(group.kind), " ", group.layers.begin, "-",
                                   group.layers.end - 1, " ", PlacementName(choice.placement)));
    }
  }
  return texts;
}

Topology Linked(int devices) {
  Topology topology = UniformTopology(devices, kByteANano, Nanos(0));
  for (TopologyLink& link : topology.links) link.wires = 1;
  topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  return WithHost(topology, devices, {.to_host = kByteANano, .from_host = kByteANano});
}

// PipeDream with two layers a worker, of 100 bytes of parameters and nothing else. The last worker
// keeps one version of them, each before it one more.
PlanningProblem PipeDream(int workers, int microbatches, Bytes capacity) {
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .parameters = Bytes(100)},
                2 * workers, LoweredSchedule("pipedream", workers, microbatches), Linked(workers));
  problem.granule = Bytes(1);
  SetCapacity(problem, capacity);
  return problem;
}

// Worker 0 needs 600 bytes, worker 1 400 and worker 2 200.
PlanningProblem ThreeVersions() { return PipeDream(3, 12, Bytes(500)); }

TEST(WeightVersionStrategies, KeepingThemSaysWhatTheyTake) {
  EXPECT_EQ(PlanWith("keep", ThreeVersions()).status().message(),
            "worker 0 needs 600 B at its fullest under keep, its capacity is 500 B");
  EXPECT_THAT(std::string(PlanWith("recompute", ThreeVersions()).status().message()),
              HasSubstr("worker 0 needs 600 B"));
}

TEST(WeightVersionStrategies, SwapsSendTheFirstLayersAwayAsFarAsNeeded) {
  for (const auto& [strategy, placement] :
       {std::pair{"host_swap", Placement::kHostSwap}, std::pair{"nvme_swap", Placement::kNvmeSwap},
        std::pair{"d2d_swap", Placement::kPeerSwap}}) {
    const auto planned = PlanWith(strategy, ThreeVersions());
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_THAT(Choices(*planned),
                ElementsAre(absl::StrCat("weight_versions 0-0 ", PlacementName(placement))));
    EXPECT_LE(Total(planned->simulated.peak[0]), Bytes(500)) << strategy;
    const absl::Status valid =
        ValidateSchedule(planned->schedule, SchedulePurpose::kTraining, planned->memory);
    EXPECT_TRUE(valid.ok()) << valid;
  }
  // Nobody holds any version but the newest and the one in use.
  PlanningProblem tight = ThreeVersions();
  SetCapacity(tight, Bytes(400));
  const auto planned = PlanWith("host_swap", tight);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(Choices(*planned), Each(HasSubstr("weight_versions")));
}

TEST(WeightVersionStrategies, LendersHaveRoomForAllVersionsAtOnce) {
  const auto planned = PlanWith("d2d_swap", ThreeVersions());
  ASSERT_TRUE(planned.ok()) << planned.status();
  Bytes lent;
  for (int worker = 1; worker < 3; ++worker) {
    EXPECT_LE(Total(planned->simulated.peak[worker]), Bytes(500));
    lent += planned->simulated.peak[worker][MemoryKind::kWeightVersions];
  }
  EXPECT_GT(lent, Bytes(100));
  // Stages 1 and 2 are as full as they may be.
  PlanningProblem full = ThreeVersions();
  full.capacity = {Bytes(500), Bytes(400), Bytes(200)};
  EXPECT_THAT(std::string(PlanWith("d2d_swap", full).status().message()),
              HasSubstr("have no room for the rest"));
}

TEST(WeightVersionStrategies, AutoIsNoWorseThanOthers) {
  const PlanningProblem problem = PipeDream(3, 6, Bytes(500));
  const auto best = PlanWith("auto", problem);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_FALSE(Choices(*best).empty());
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const auto planned = strategy.plan(problem);
    if (!planned.ok()) continue;
    EXPECT_LE(best->simulated.step_time, planned->simulated.step_time) << strategy.name;
  }
}

// Of 800 bytes worker 0 may have 700: MPress saves all that it can of a full worker.
TEST(WeightVersionStrategies, MpressSendsThoseOfFullWorkersAway) {
  const auto planned = PlanWith("mpress", PipeDream(4, 8, Bytes(700)));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(Choices(*planned),
              ElementsAre("weight_versions 0-0 host_swap", "weight_versions 1-1 host_swap"));
}

// Versions of all three stages, and none of a synchronous schedule.
TEST(WeightVersionStrategies, DraftsHaveThemWhereTheScheduleStashesSome) {
  const PlanningProblem problem = ThreeVersions();
  DraftPlan draft = KeepingDraft(problem);
  EXPECT_EQ(draft.stages[0].weight_versions.size(), 2U);
  EXPECT_EQ(draft.stages[1].weight_versions.size(), 2U);
  EXPECT_TRUE(draft.stages[2].weight_versions.empty());
  draft.stages[0].weight_versions[1] = Placement::kPeerSwap;
  EXPECT_TRUE(Uses(draft, Placement::kPeerSwap));
  draft =
      Replace(std::move(draft), Placement::kPeerSwap, Placement::kRecompute, Placement::kHostSwap);
  EXPECT_EQ(draft.stages[0].weight_versions[1], Placement::kHostSwap);
  PlanningProblem synchronous = problem;
  synchronous.schedule = LoweredSchedule("1f1b", 3, 12);
  for (const StagePlan& stage : PlanOf(synchronous, KeepingDraft(synchronous)).stages) {
    for (const PlannedGroup& planned : stage.groups) {
      EXPECT_NE(planned.group.kind, GroupKind::kWeightVersions);
    }
  }
}

// Two layers a stage of 10 ns forward and 20 backward, no time for messages nor updates:
//   worker 0: F0 [0,20) F1 [20,40)             B0 [80,120) F2 [120,140) B1 [140,180)  B2 [200,240)
//   worker 1:           F0 [20,40) B0 [40,80) F1 [80,100) B1 [100,140) F2 [140,160) B2 [160,200)
// B1 goes by the weights before UPDATE0, which B0 has used last; B2 by those before UPDATE1, which
// F2 has. Of the first layer: from 120 (B0) until 160 (B1), or from 130 until 220; of the second:
// from 100 until 140, or from 140 until 200.
TEST(LiveIntervals, OfWeightVersionsAreFromTheirLastUseAsTheNewest) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(10),
                                       .input_backward = Nanos(10),
                                       .weight_backward = Nanos(10),
                                       .parameters = Bytes(8)},
                                      4, LoweredSchedule("pipedream", 2, 3), {});
  MemoryPlan plan;
  plan.stages.resize(2);
  for (int layer = 0; layer < 2; ++layer) {
    plan.stages[0].groups.push_back(
        {.group = {GroupKind::kWeightVersions, {layer, layer + 1}, Bytes(8)}});
  }
  const SimulatedStep step =
      Simulate(SimulationOf(problem, IdentityMapping(2), {}, problem.schedule)).value();
  ASSERT_EQ(step.step_time, Nanos(240));
  const auto intervals = LiveIntervals(problem, plan, step);
  EXPECT_THAT(intervals[0], ElementsAre(Nanos(40), Nanos(40)));
  // Nothing computes them again, so they go to the host even where that is slow.
  problem.transport.host_rate = BytesPerSecond(1'000'000);
  plan =
      AssignWithoutPeers(problem, IdentityMapping(2), plan, {intervals, Nanos(80)}, {true, true});
  for (const PlannedGroup& planned : plan.stages[0].groups) {
    EXPECT_EQ(planned.choice.placement, Placement::kHostSwap);
  }
}

}  // namespace
}  // namespace siphon
