#include "planner/search/start_within_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "planner/search/start_drafts.h"
#include "planner/search/swap_draft.h"
#include "planner/strategies/memory_strategy.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Four workers of four layers each, all alike, under gpipe: each has eight microbatches at once,
// 320 bytes, and may have 160. Copies to the host are as fast as one likes, computing again is not.
PlanningProblem FourWorkers(Bytes host) {
  Topology topology = WithHost(UniformTopology(4, kByteANano, Nanos(0)), 1, {});
  topology.host_memory = host;
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .boundary = Bytes(1),
                                       .saved = {{"all", Bytes(10)}}},
                                      16, LoweredSchedule("gpipe", 4, 8), std::move(topology));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(160));
  return problem;
}

int Count(const DraftPlan& draft, Placement placement) {
  int count = 0;
  for (const StageDraft& stage : draft.stages) {
    count +=
        static_cast<int>(std::count(stage.activations.begin(), stage.activations.end(), placement));
  }
  return count;
}

TEST(StartWithinHost, IsForHostsThatMayBeTooSmall) {
  // All workers together have about 700 bytes too much.
  for (const auto& [host, may_fill] :
       {std::pair(0, false), {100, true}, {1000, true}, {2000, false}}) {
    const PlanningProblem problem = FourWorkers(Bytes(host));
    DraftSimulator simulator(problem);
    EXPECT_EQ(MayFillHosts(problem, DraftKeep(simulator).value()), may_fill) << host;
  }
}

TEST(StartWithinHost, ComputesAgainInAllStagesAlikeWhatHostsHaveNoRoomFor) {
  int before = 17;
  for (const int host : {150, 300, 600, 900}) {
    const PlanningProblem problem = FourWorkers(Bytes(host));
    DraftSimulator simulator(problem);
    const auto start = StartWithinHost(simulator, KeepingDraft(problem));
    ASSERT_TRUE(start.ok()) << host << start.status();
    EXPECT_TRUE(Fits(*start));
    EXPECT_LE(start->simulated.host_peak, Bytes(host));
    const int again = Count(start->draft, Placement::kRecompute);
    EXPECT_LE(again, before) << host;
    before = again;
    // No stage does more than one layer more than another.
    int least = 4, most = 0;
    for (const StageDraft& stage : start->draft.stages) {
      const auto count = static_cast<int>(
          std::count(stage.activations.begin(), stage.activations.end(), Placement::kRecompute));
      least = std::min(least, count);
      most = std::max(most, count);
    }
    EXPECT_LE(most - least, 1) << host;
  }
  EXPECT_LT(before, 4) << "a host with room for nearly all";
}

TEST(StartWithinHost, IsOnlyForHostsThatRefusedADraft) {
  for (const auto& [host, refuses] : {std::pair(3000, false), {300, true}}) {
    const PlanningProblem problem = FourWorkers(Bytes(host));
    DraftSimulator simulator(problem);
    const auto kept = DraftKeep(simulator);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_FALSE(simulator.has_refused());
    ASSERT_TRUE(BestStart(simulator, *kept).ok());
    EXPECT_EQ(simulator.has_refused(), refuses) << host;
  }
}

TEST(StartWithinHost, SaysWhereHostsHaveRoomForWhatTheBestStartParks) {
  const PlanningProblem problem = FourWorkers(Bytes(3000));
  DraftSimulator simulator(problem);
  EXPECT_EQ(StartWithinHost(simulator, KeepingDraft(problem)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(StartWithinHost, SaysWhereNothingFits) {
  PlanningProblem problem = FourWorkers(Bytes(150));
  SetCapacity(problem, Bytes(5));
  DraftSimulator simulator(problem);
  EXPECT_EQ(StartWithinHost(simulator, KeepingDraft(problem)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace siphon
