#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/drafts/draft_simulator.h"
#include "planner/drafts/fit_moves.h"
#include "planner/keyed_hash.h"
#include "planner/simulator/simulate_times.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// Two microbatches, all forwards first, a layer of 10 bytes of activations on each worker. Worker 1
// has room for one microbatch only, so each is with worker 0 while the other is computed:
//   worker 0   F0 [0,1000)    F1 [1000,2000)                    B0 [5030,7030)  B1 [7040,9040)
//   worker 1   F0 [1000,2000) F1 [2010,3010)  B0 [3030,5030)  B1 [5040,7040)
//   with worker 0             0 [2000,3030)  1 [3010,5040)
// Worker 0's backward takes 20 bytes beside its own 20 of activations: with 50 it lends 10 at its
// fullest, but 30 before, when both of worker 1's microbatches are with it for 20 ns.
PlanningProblem LenderThatIsFullLate() {
  PlanningProblem problem = ProblemOf({.forward = Nanos(1000),
                                       .input_backward = Nanos(1000),
                                       .weight_backward = Nanos(1000),
                                       .saved = {{"all", Bytes(10)}}},
                                      2, LoweredSchedule("gpipe", 2, 2), TwoLinkedDevices());
  problem.profile.layers[0].backward_workspace = Bytes(20);
  problem.granule = Bytes(1);
  problem.capacity = {Bytes(50), Bytes(15)};
  return problem;
}

TEST(LendingOverTime, FindsAPlanWherePeaksFindNone) {
  const PlanningProblem problem = LenderThatIsFullLate();
  DraftSimulator simulator(problem);
  const auto peaks = DraftPeerSwap(simulator);
  ASSERT_TRUE(peaks.ok()) << peaks.status();
  EXPECT_FALSE(Fits(*peaks));
  simulator.LendBy(LendingRule::kOverTime);
  const auto draft = DraftPeerSwap(simulator);
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_TRUE(Fits(*draft));
  EXPECT_EQ(draft->draft.lenders[1].size(), 1u);
  // As drawn above, and never more than its capacity at any moment.
  const auto planned = PlanPeerSwap(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->simulated.step_time, Nanos(9040));
  EXPECT_EQ(Total(planned->simulated.peak[0]), Bytes(50));
  EXPECT_EQ(Total(planned->simulated.peak[1]), Bytes(10));
}

TEST(LendingOverTime, FindsNoneWhereThereIsAByteTooLittle) {
  PlanningProblem problem = LenderThatIsFullLate();
  problem.capacity[0] = Bytes(49);
  const auto planned = PlanPeerSwap(problem);
  EXPECT_TRUE(absl::IsResourceExhausted(planned.status())) << planned.status();
}

struct LendingShape {
  std::string schedule;
  int workers = 2;
  uint64_t seed = 1;
};

// A fabric with no device but the workers'.
Topology AllLinked(int workers) {
  Topology topology = UniformTopology(workers, BytesPerSecond(48'000'000'000), Nanos(2'000));
  for (TopologyLink& link : topology.links) link.wires = 1;
  return topology;
}

// Some workers have some of their layers with lenders, the others keep everything.
DraftPlan RandomDraft(const PlanningProblem& problem, KeyedGenerator& dice) {
  DraftPlan draft = KeepingDraft(problem);
  for (StageDraft& stage : draft.stages) {
    stage.timing.forwards_to_leave = static_cast<int>(dice.Below(2));
    stage.timing.actions_to_come_back = static_cast<int>(dice.Below(2));
    if (dice.Below(2) == 0) continue;
    for (Placement& layer : stage.activations) {
      if (dice.Below(2) == 0) layer = Placement::kPeerSwap;
    }
  }
  return draft;
}

// [worker]: what each holds at most of its own while the draft runs with plenty of room.
std::vector<Bytes> OwnPeaks(PlanningProblem& problem, const DraftPlan& draft) {
  SetCapacity(problem, Bytes(1000 * kGiB));
  const auto run = DraftSimulator(problem).Run(draft);
  EXPECT_TRUE(run.ok()) << run.status();
  SimulationInput input = SimulationOf(problem, run->draft.mapping, run->memory, run->schedule);
  const auto times = SimulateTimes(input, LendingDetail::kLent);
  EXPECT_TRUE(times.ok()) << times.status();
  return OwnPeaks(times->lent);
}

// How much room each worker must have beside `own` for the draft to fit, in tenths of a GiB;
// checked with all limits there.
int64_t LeastRoom(PlanningProblem& problem, const std::vector<Bytes>& own, const DraftPlan& draft,
                  LendingRule rule) {
  int64_t least = 128;
  for (int64_t step = 64; step > 0; step /= 2) {
    for (size_t worker = 0; worker < own.size(); ++worker) {
      problem.capacity[worker] = own[worker] + Bytes((least - step) * kGiB / 10);
    }
    DraftSimulator simulator(problem);
    simulator.LendBy(rule);
    const auto run = simulator.Run(draft);
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok() || !Fits(*run)) continue;
    EXPECT_TRUE(PlannedOf(problem, *run, "d2d_swap").ok());
    least -= step;
  }
  return least;
}

TEST(LendingOverTime, NeverLosesAndNeverOverLends) {
  int gains = 0;
  for (const LendingShape& shape :
       {LendingShape{"gpipe", 4, 1}, LendingShape{"1f1b", 4, 2}, LendingShape{"1f1b", 3, 3},
        LendingShape{"interleaved_1f1b", 2, 4}, LendingShape{"zb_h1", 4, 5}}) {
    PlanningProblem problem =
        ProblemOf(GptLayer(), 3 * shape.workers * FindSchedule(shape.schedule)->chunks,
                  LoweredSchedule(shape.schedule, shape.workers, 2 * shape.workers),
                  AllLinked(shape.workers));
    KeyedGenerator dice(shape.seed);
    for (int trial = 0; trial < 3; ++trial) {
      SCOPED_TRACE(absl::StrCat(shape.schedule, ", trial ", trial));
      const DraftPlan draft = RandomDraft(problem, dice);
      const std::vector<Bytes> own = OwnPeaks(problem, draft);
      const int64_t peaks = LeastRoom(problem, own, draft, LendingRule::kPeaks);
      const int64_t over_time = LeastRoom(problem, own, draft, LendingRule::kOverTime);
      EXPECT_LE(over_time, peaks);
      gains += over_time < peaks ? 1 : 0;
    }
  }
  EXPECT_GE(gains, 5) << "of 15; some of them have no owners";
}

}  // namespace
}  // namespace siphon
