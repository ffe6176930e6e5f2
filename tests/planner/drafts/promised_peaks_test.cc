// Plans that have to hold however long copies take (LendingRule::kPeaks), checked with the layout
// of parking that workers make of them (swap/), which knows nothing of how they were planned.

#include "planner/drafts/promised_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/strategies/memory_strategy.h"
#include "swap/parking_layout.h"
#include "tests/planner/dice.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

absl::StatusOr<PlannedStep> PlanWith(absl::string_view strategy, const PlanningProblem& problem) {
  const auto found = FindMemoryStrategy(strategy);
  if (!found.ok()) return found.status();
  return found->plan(problem);
}

// [worker]: what it holds at most of its own.
std::vector<Bytes> OwnPeaks(const PlanningProblem& problem, const PlannedStep& planned) {
  const auto times =
      SimulateTimes(SimulationOf(problem, planned.mapping, planned.memory, planned.schedule),
                    LendingDetail::kLent);
  EXPECT_TRUE(times.ok()) << times.status();
  return OwnPeaks(times->lent);
}

// Worker 0's two layers, 10 bytes each, are with device 1, of two microbatches at once.
TEST(ParkedAtMost, IsEveryGroupAsOftenAsItIsAwayAtOnce) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {Placement::kPeerSwap, Placement::kPeerSwap};
  draft.stages[1].activations = {Placement::kHostSwap, Placement::kKeep};
  draft.stages[1].direct = DirectBackward::kLeave;
  draft.lenders[0] = {{DeviceId(1), 1}};
  const auto parked = [&] {
    const MemoryPlan memory = PlanOf(problem, draft);
    const auto schedule = LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft));
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return ParkedAtMostBy(problem, draft.mapping, memory, *schedule);
  };
  EXPECT_THAT(parked().with_device, ElementsAre(Bytes(0), Bytes(2 * 2 * 10)));
  EXPECT_THAT(parked().with_host, ElementsAre(Bytes(0))) << "its backwards follow their forwards";
  problem.granule = Bytes(64);
  EXPECT_THAT(parked().with_device, ElementsAre(Bytes(0), Bytes(2 * 2 * 64)));
  draft.stages[0].activations[1] = Placement::kHostSwap;
  PutStepOnHost(draft.stages[0]);
  problem.profile.layers[0].optimizer_state = Bytes(8);
  problem.profile.layers[1].gradients = Bytes(4);
  EXPECT_THAT(parked().with_device, ElementsAre(Bytes(0), Bytes(2 * 64)));
  EXPECT_THAT(parked().with_host, ElementsAre(Bytes(2 * 64 + 8 + 4)));
}

// As in lending_over_time_test: worker 1 parks 20 bytes at most, worker 0 needs 40 of 50 at its
// fullest, which is when only 10 of those are with it.
TEST(LendingPeaks, PromisesNothingThatHangsOnTimes) {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = {{"all", Bytes(10)}}},
                                      2, LoweredSchedule("gpipe", 2, 2), TwoLinkedDevices());
  problem.profile.layers[0].backward_workspace = Bytes(20);
  problem.granule = Bytes(1);
  problem.capacity = {Bytes(50), Bytes(15)};
  ASSERT_TRUE(PlanWith("d2d_swap", problem).ok());
  problem.lending = LendingRule::kPeaks;
  EXPECT_TRUE(absl::IsResourceExhausted(PlanWith("d2d_swap", problem).status()));
  problem.capacity[0] = Bytes(59);
  EXPECT_TRUE(absl::IsResourceExhausted(PlanWith("d2d_swap", problem).status()));
  problem.capacity[0] = Bytes(60);
  const auto planned = PlanWith("d2d_swap", problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(OwnPeaks(problem, *planned), ElementsAre(Bytes(40), Bytes(10)));
}

TEST(PromisedPeaks, AreWhatIsOwnAndAllThatIsEverLent) {
  PlanningProblem problem = TwoWorkers(TwoLinkedDevices());
  DraftPlan draft = KeepingDraft(problem);
  draft.stages[0].activations = {Placement::kPeerSwap, Placement::kHostSwap};
  draft.lenders[0] = {{DeviceId(1), 1}};
  const MemoryPlan memory = PlanOf(problem, draft);
  const auto schedule = LowerMemoryPlan(problem.schedule, memory, LoweringOf(draft));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  StepTimes times;
  times.step.peak.resize(2);
  times.step.peak[0][MemoryKind::kActivations] = Bytes(7);
  times.step.peak[1][MemoryKind::kActivations] = Bytes(30);
  times.lent.own = {{Bytes(1), Bytes(7), Bytes(0)}, {Bytes(10), Bytes(9), Bytes(10)}};
  const auto peaks = [&] {
    return PromisedPeaks(problem, draft.mapping, memory, *schedule, times);
  };
  problem.topology.host_memory = Bytes(20);
  ASSERT_TRUE(peaks().ok()) << peaks().status();
  EXPECT_THAT(*peaks(), ElementsAre(Bytes(7), Bytes(10 + 2 * 10)));
  problem.topology.host_memory = Bytes(19);
  EXPECT_EQ(peaks().status(),
            absl::ResourceExhaustedError("the host may have to hold 20 B at once; it has 19 B"));
}

PlanningProblem SmallProblem(uint32_t seed) {
  Dice dice(seed);
  constexpr const char* kSchedules[] = {"1f1b", "zb_h1", "interleaved_1f1b"};
  const int workers = dice.Roll(2, 3);
  const Schedule schedule = LoweredSchedule(kSchedules[dice.Roll(0, 2)], workers, 2 * workers);
  Topology topology =
      UniformTopology(workers, BytesPerSecond(dice.Roll(1, 8) * 1'000'000'000LL), Nanos(5));
  for (TopologyLink& link : topology.links) link.wires = 1;
  PlanningProblem problem = ProblemOf({.forward = Nanos(dice.Roll(50, 200)),
                                       .input_backward = Nanos(dice.Roll(50, 200)),
                                       .weight_backward = Nanos(dice.Roll(50, 200)),
                                       .boundary = Bytes(10),
                                       .saved = {{"all", Bytes(dice.Roll(100, 1500))}}},
                                      dice.Roll(2, 3) * StageCount(schedule), schedule, topology);
  problem.lending = LendingRule::kPeaks;
  const auto kept = PlanWith("keep", problem);
  EXPECT_TRUE(kept.ok()) << kept.status();
  Bytes most;
  for (const MemoryByKind& peak : kept->simulated.peak) most = std::max(most, Total(peak));
  SetCapacity(problem, Bytes(most.value * dice.Roll(70, 90) / 100));
  return problem;
}

// Whether the plan has lenders.
bool CheckPromises(const PlanningProblem& problem, const PlannedStep& planned) {
  const auto parking = LayOutParking(planned.memory, planned.schedule);
  EXPECT_TRUE(parking.ok()) << parking.status();
  if (!parking.ok()) return false;
  const ParkedAtMost parked =
      ParkedAtMostBy(problem, planned.mapping, planned.memory, planned.schedule);
  const std::vector<Bytes> own = OwnPeaks(problem, planned);
  bool lends = false;
  for (size_t worker = 0; worker < own.size(); ++worker) {
    const DeviceId device = planned.mapping.device_of_worker[worker];
    EXPECT_EQ(LentBytes(*parking, device), parked.with_device[device.value]) << worker;
    EXPECT_LE(own[worker] + LentBytes(*parking, device), problem.capacity[worker]) << worker;
    lends |= LentBytes(*parking, device) > Bytes(0);
  }
  return lends;
}

// The same programs with links and computing faster or slower. Messages between stages stay with
// their maker until they are sent, so they are left out.
void CheckAtOtherSpeeds(PlanningProblem problem, const PlannedStep& planned, Dice& dice) {
  for (LayerProfile& layer : problem.profile.layers) layer.boundary = Bytes(0);
  const std::vector<Bytes> own = OwnPeaks(problem, planned);
  for (TopologyLink& link : problem.topology.links) {
    link.rate = BytesPerSecond(1 + link.rate.value * dice.Roll(1, 40) / 10);
    link.latency = Nanos(dice.Roll(0, 500));
  }
  for (LayerProfile& layer : problem.profile.layers) {
    layer.forward = Nanos(dice.Roll(1, 400));
    layer.input_backward = Nanos(dice.Roll(1, 400));
  }
  EXPECT_EQ(OwnPeaks(problem, planned), own);
}

TEST(LendingPeaks, KeepTheirPromisesAtAnySpeed) {
  int lent = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const PlanningProblem problem = SmallProblem(seed);
    Dice dice(seed + 1000);
    for (const char* strategy : {"d2d_swap", "mpress", "auto"}) {
      if (strategy == std::string("auto") && seed >= 3) continue;  // seconds under sanitizers
      SCOPED_TRACE(absl::StrCat(strategy, ", seed ", seed));
      const auto planned = PlanWith(strategy, problem);
      if (absl::IsResourceExhausted(planned.status())) continue;
      ASSERT_TRUE(planned.ok()) << planned.status();
      lent += CheckPromises(problem, *planned) ? 1 : 0;
      CheckAtOtherSpeeds(problem, *planned, dice);
    }
  }
  EXPECT_GE(lent, 5) << "of 23; some need no lenders, or find none";
}

}  // namespace
}  // namespace siphon
