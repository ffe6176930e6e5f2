// As few microbatches of as few layers on the way as needed.

#include "planner/drafts/fewest_microbatches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/search/swap_draft.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/drafts/planning_testing.h"

namespace siphon {
namespace {

// `workers` with four layers each, of 10 bytes of activations, and a host: all forwards first. A
// layer's forward takes 1000 ns, its copy `copy`.
PlanningProblem WithAHost(absl::string_view schedule, int workers, int microbatches, int64_t copy,
                          int64_t capacity) {
  const BytesPerSecond rate(10'000'000'000 / copy);
  Topology topology = UniformTopology(workers, kByteANano, Nanos(0));
  topology = WithHost(topology, 1, {.to_host = rate, .from_host = rate});
  PlanningProblem problem =
      ProblemOf({.forward = Nanos(1000),
                 .input_backward = Nanos(1000),
                 .weight_backward = Nanos(1000),
                 .saved = {{"all", Bytes(10)}}},
                4 * workers, LoweredSchedule(schedule, workers, microbatches), std::move(topology));
  problem.granule = Bytes(1);
  SetCapacity(problem, Bytes(capacity));
  return problem;
}

int CopiesOut(const SimulatedDraft& simulated) {
  int copies = 0;
  for (const std::vector<Action>& program : simulated.schedule.programs) {
    copies += static_cast<int>(std::count_if(program.begin(), program.end(), [](const Action& one) {
      return one.kind == ActionKind::kSwapOut;
    }));
  }
  return copies;
}

// 16 microbatches of 40 bytes need 640. A layer that goes for all but the last one leaves 490 and
// what is on its way; for four of eight microbatches about half of that.
TEST(FewestMicrobatches, LetsAsFewMicrobatchesGoAsNeeded) {
  const PlanningProblem problem = WithAHost("gpipe", 1, 16, 100, 580);
  DraftSimulator simulator(problem);
  const auto whole = SwapToOnePlace(simulator, KeepingDraft(problem), Placement::kHostSwap);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(Fits(*whole));
  EXPECT_GE(CopiesOut(*whole), 15);
  const int before = simulator.simulations();
  const auto needed = FewestSwapped(simulator, *whole, Placement::kHostSwap);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_LE(simulator.simulations() - before, 12);
  EXPECT_TRUE(Fits(*needed));
  EXPECT_LE(needed->score, whole->score);
  EXPECT_LE(CopiesOut(*needed), 8);
  const int share = needed->draft.stages[0].shares[0];
  EXPECT_LT(share, LowerMemoryOptions::kShares);
  DraftPlan fewer = needed->draft;
  --fewer.stages[0].shares[0];
  const auto too_few = simulator.Run(fewer);
  ASSERT_TRUE(too_few.ok()) << too_few.status();
  EXPECT_FALSE(Fits(*too_few));
}

// Three layers take 3.9 of a forward's 4 us to the host: copies are hidden beside forwards and
// backwards, but not those of what leaves last and is needed first, one behind the other.
TEST(FewestMicrobatches, KeepsWhatIsNeededFirstWhereAllForwardsComeFirst) {
  const PlanningProblem problem = WithAHost("gpipe", 1, 8, 1300, 170);
  DraftSimulator simulator(problem);
  const auto whole = SwapToOnePlace(simulator, KeepingDraft(problem), Placement::kHostSwap);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(Fits(*whole));
  const auto needed = FewestSwapped(simulator, *whole, Placement::kHostSwap);
  ASSERT_TRUE(needed.ok()) << needed.status();
  EXPECT_TRUE(Fits(*needed));
  const Nanos kept(8 * 4 * 3000);
  EXPECT_LT((needed->score.step - kept) * 2, whole->score.step - kept);
  EXPECT_EQ(needed->draft.stages[0].timing.turn, SwapTiming::Turn::kFirstStay);
  DraftPlan other = needed->draft;
  other.stages[0].timing.turn = SwapTiming::Turn::kLastStay;
  const auto turned = simulator.Run(other);
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_GT(turned->score, needed->score);
  const auto planned = PlanHostSwap(problem);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(planned->simulated.step_time, needed->score.step);
}

TEST(FewestMicrobatches, IsNeverWorseThanItsStart) {
  int fewer = 0, faster = 0;
  for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "interleaved_1f1b"}) {
    for (const int64_t copy : {200, 700, 1500}) {
      for (const int64_t capacity : {60, 100, 170, 250}) {
        const PlanningProblem problem = WithAHost(schedule, 2, 8, copy, capacity);
        DraftSimulator simulator(problem);
        const auto whole = SwapToOnePlace(simulator, KeepingDraft(problem), Placement::kHostSwap);
        ASSERT_TRUE(whole.ok()) << whole.status();
        const auto needed = FewestSwapped(simulator, *whole, Placement::kHostSwap);
        ASSERT_TRUE(needed.ok()) << needed.status();
        EXPECT_LE(needed->score, whole->score) << schedule << " " << copy << " " << capacity;
        EXPECT_LE(CopiesOut(*needed), CopiesOut(*whole) + 8);
        fewer += CopiesOut(*needed) < CopiesOut(*whole) ? 1 : 0;
        faster += needed->score.step < whole->score.step ? 1 : 0;
      }
    }
  }
  EXPECT_GT(fewer, 6);
  EXPECT_GT(faster, 3);
}

}  // namespace
}  // namespace siphon
