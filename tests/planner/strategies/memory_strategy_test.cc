#include "planner/strategies/memory_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/lowering/settle_plan.h"
#include "tests/planner/drafts/planning_testing.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  if (!found.ok()) return found.status();
  return found->plan(problem);
}

PlannedStep Planned(absl::string_view strategy, const PlanningProblem& problem) {
  auto planned = PlanWith(strategy, problem);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.ok() ? *std::move(planned) : PlannedStep{};
}

// -1 byte without a plan.
Bytes PeakOf(const PlannedStep& planned, size_t worker) {
  const std::vector<MemoryByKind>& peaks = planned.simulated.peak;
  return worker < peaks.size() ? Total(peaks[worker]) : Bytes(-1);
}

// Layers that go somewhere: "activations 0-1 recompute", one a group, in the order of the stages.
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

TEST(MemoryStrategies, AreFoundByName) {
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const auto found = FindMemoryStrategy(strategy.name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->plan, strategy.plan);
    EXPECT_FALSE(strategy.help.empty());
  }
  EXPECT_THAT(FindMemoryStrategy("magic").status().ToString(),
              HasSubstr("NOT_FOUND: no memory strategy is called 'magic'; there are keep, "));
}

TEST(MemoryStrategies, KeepEverythingWhereItFits) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  SetCapacity(problem, Bytes(40));
  const PlannedStep kept = Planned("keep", problem);
  EXPECT_THAT(Choices(kept), IsEmpty());
  EXPECT_EQ(kept.schedule, problem.schedule);
  for (const absl::string_view name : {"recompute", "host_swap", "d2d_swap", "auto"}) {
    const PlannedStep planned = Planned(name, problem);
    EXPECT_THAT(Choices(planned), IsEmpty()) << name;
    EXPECT_EQ(planned.simulated, kept.simulated) << name;
  }
}

// What a plan says goes somewhere does, and what its text may not say it does not: whoever reads it
// makes the same programs of it.
TEST(MemoryStrategies, PlanWhatTheirProgramsDo) {
  int plans = 0;
  for (const absl::string_view schedule : {"1f1b", "gpipe", "zb_h1"}) {
    PlanningProblem problem = TwoFullWorkers(Bytes(0));
    problem.schedule = LoweredSchedule(schedule, 2, 4);
    for (const int capacity : {700, 420}) {
      // All take a minute under a sanitizer: each schedule with one capacity, both in use.
      if (kSanitized && (capacity == 700) == (schedule == "gpipe")) continue;
      SetCapacity(problem, Bytes(capacity));
      for (const MemoryStrategy& strategy : MemoryStrategies()) {
        const auto planned = strategy.plan(problem);
        if (!planned.ok()) continue;
        ++plans;
        MemoryPlan settled = planned->memory;
        SettlePlan(planned->schedule, problem.partition, settled);
        EXPECT_EQ(settled, planned->memory)
            << strategy.name << " " << schedule << " within " << capacity;
      }
    }
  }
  EXPECT_GT(plans, kSanitized ? 10 : 20);
}

TEST(Keep, SaysWhoNeedsHowMuch) {
  EXPECT_EQ(PlanWith("keep", TwoWorkers({})).status().ToString(),
            "RESOURCE_EXHAUSTED: worker 0 needs 40 B at its fullest under keep, its capacity is "
            "35 B");
}

// With one layer of each microbatch dropped, 20 bytes stay, and the backward makes 10 anew.
TEST(Recompute, TakesTheLastLayerOnlyWhereThatIsEnough) {
  const PlannedStep planned = Planned("recompute", TwoWorkers({}));
  EXPECT_THAT(Choices(planned), ElementsAre("activations 1-1 recompute"));
  EXPECT_EQ(PeakOf(planned, 0), Bytes(30));
}

TEST(Recompute, SaysWhatAllOfItStillNeeds) {
  PlanningProblem problem = TwoWorkers({});
  SetCapacity(problem, Bytes(9));
  EXPECT_THAT(PlanWith("recompute", problem).status().ToString(),
              testing::AllOf(HasSubstr("RESOURCE_EXHAUSTED: worker "),
                             HasSubstr("at its fullest under recompute, its capacity is 9 B")));
}

TEST(HostSwap, SwapsTheFirstLayerOnlyWhereThatIsEnough) {
  const PlannedStep planned = Planned("host_swap", TwoWorkers(TwoLinkedDevices()));
  EXPECT_THAT(Choices(planned), ElementsAre("activations 0-0 host_swap"));
  EXPECT_GT(planned.simulated.host_peak, Bytes(0));
}

TEST(HostSwap, NeedsAWayToTheHost) {
  PlanningProblem problem = TwoWorkers(UniformTopology(2, kByteANano, Nanos(0)));
  EXPECT_EQ(PlanWith("host_swap", problem).status().code(), absl::StatusCode::kInvalidArgument);
}

// Worker 1 has 20 bytes to spare: one layer of two microbatches.
TEST(PeerSwap, ParksTheFirstLayerWithTheOtherWorker) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  problem.capacity[1] = Bytes(40);
  const PlannedStep planned = Planned("d2d_swap", problem);
  EXPECT_THAT(Choices(planned), ElementsAre("activations 0-0 d2d_swap"));
  EXPECT_EQ(PeakOf(planned, 1), Bytes(40));
}

TEST(PeerSwap, SaysWhatLendersLack) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  SetCapacity(problem, Bytes(21));
  EXPECT_EQ(PlanWith("d2d_swap", problem).status().ToString(),
            "RESOURCE_EXHAUSTED: worker 0 needs 40 B at its fullest under d2d_swap, its capacity "
            "is 21 B, and lenders that it reaches have no room for the rest");
}

TEST(NvmeSwap, NeedsADrive) {
  EXPECT_EQ(PlanWith("nvme_swap", TwoWorkers(TwoLinkedDevices())).status().ToString(),
            "INVALID_ARGUMENT: nvme_swap needs an NVMe drive, but the topology has none");
}

TEST(NvmeSwap, SwapsToTheDrive) {
  Topology topology = TwoLinkedDevices();
  topology.drives.push_back({.read = kByteANano, .write = kByteANano});
  const PlannedStep planned = Planned("nvme_swap", TwoWorkers(topology));
  EXPECT_THAT(Choices(planned), ElementsAre("activations 0-0 nvme_swap"));
}

// All optimizer state of worker 0, which is 100 bytes, is on the host.
TEST(OptimizerOffload, HoldsTheStateOfFullWorkersOnTheHost) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  for (LayerProfile& layer : problem.profile.layers) {
    layer.parameters = Bytes(5);
    layer.gradients = Bytes(5);
    layer.optimizer_state = Bytes(50);
    layer.optimizer = Nanos(100);
  }
  SetCapacity(problem, Bytes(145));
  problem.host_step = Nanos(4000);
  EXPECT_FALSE(PlanWith("keep", problem).ok());
  const PlannedStep planned = Planned("optimizer_offload", problem);
  ASSERT_EQ(planned.memory.stages.size(), 2u);
  EXPECT_EQ(planned.memory.stages[0].update, UpdatePlace::kHost);
  EXPECT_EQ(planned.memory.stages[1].update, UpdatePlace::kDevice);
  EXPECT_EQ(PeakOf(planned, 0), Bytes(60));
}

TEST(OptimizerOffload, NeedsToKnowWhatTheHostTakes) {
  EXPECT_EQ(PlanWith("optimizer_offload", TwoWorkers(TwoLinkedDevices())).status().ToString(),
            "INVALID_ARGUMENT: optimizer_offload needs the time of an optimizer step on the host");
}

// SGD without momentum counts its steps, and no more.
TEST(OptimizerOffload, HasNothingToSendWhereTheOptimizerHasNoStateOfEachElement) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  for (LayerProfile& layer : problem.profile.layers) layer.parameters = Bytes(400);
  problem.profile.layers[0].optimizer_state = Bytes(4);
  EXPECT_EQ(PlanWith("optimizer_offload", problem).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(MemoryStrategies, RefuseAProblemThatDoesNotBelongTogether) {
  PlanningProblem problem = TwoWorkers({});
  problem.partition.stages[1].end = 3;
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    EXPECT_EQ(strategy.plan(problem).status().ToString(),
              "INVALID_ARGUMENT: the partition has 3 layers, but the profile has 4")
        << strategy.name;
  }
}

}  // namespace
}  // namespace siphon
