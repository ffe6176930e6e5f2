#include "planner/bounds/moments/moment_program.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/bounds/windows/program_rows.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

// The part of this program, which is rounded down by a millionth and a nanosecond at most.
void ExpectMoments(const PlanningProblem& problem, Nanos exact) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  const std::optional<Nanos> part =
      PartOf(BoundOf(problem), "computing and copying from moment to moment");
  ASSERT_TRUE(part.has_value());
  EXPECT_LE(*part, exact);
  EXPECT_GE(part->value, exact.value - exact.value / 1'000'000 - 1);
}

// Worker 0: F0 F1 I0 I1 W0 W1 of one layer: moments 1 to 6, 0 the begin and 7 the end.
TEST(MomentFacts, AreWhatIsLiveAsActionsBegin) {
  LayerProfile layer = PlainLayer();
  layer.kept_for_weights = Bytes(60'000);
  layer.backward_workspace = Bytes(5'000);
  const PlanningProblem problem =
      ProblemOf(ParseSchedule("0F0 0F1 0I0 0I1 0W0 0W1\n").value(), layer, Bytes(100'000));
  const std::optional<MomentFacts> facts = MomentFactsOf(problem, FactsOf(problem));
  ASSERT_TRUE(facts.has_value());
  const WorkerMoments& worker = facts->workers[0];
  ASSERT_EQ(worker.moments.size(), 8u);
  std::string live;
  for (const Moment& moment : worker.moments) {
    live += absl::StrCat(moment.live.value / 1000, "+", moment.fixed.value / 1000, " ");
  }
  EXPECT_EQ(live, "0+0 0+0 100+0 200+5 100+65 0+120 0+60 0+0 ");
  EXPECT_EQ(worker.moments[3].ends_life, 0);
  EXPECT_EQ(worker.moments[4].ends_life, 1);
  EXPECT_TRUE(worker.moments[5].uses_gradients);
  EXPECT_EQ(worker.tail, Nanos(0));
  EXPECT_EQ(facts->links.size(), 5u);
}

// F0 on worker 0 takes 10 us, so that worker 1 is at its second moment at the earliest when worker
// 0 begins B0, which waits for its B0.
TEST(MomentFacts, AreSeenByOthers) {
  const PlanningProblem problem =
      ProblemOf(ScheduleOf("gpipe", 2, 2), PlainLayer(), Bytes(100'000));
  const BoundFacts facts = FactsOf(problem);
  const std::optional<MomentFacts> moments = MomentFactsOf(problem, facts);
  ASSERT_TRUE(moments.has_value());
  // Worker 0: F0 F1 B0 B1; worker 1 likewise. Behind B0 of worker 1, and before its B1, or not.
  const std::vector<MomentRange> seen = moments->Seen(facts, 0, 3);
  EXPECT_EQ(seen[0].before, 3);
  EXPECT_EQ(seen[0].behind, 3);
  EXPECT_EQ(seen[1].before, 3);
  EXPECT_EQ(seen[1].behind, MomentRange::kNone);
  const std::vector<MomentRange> back = moments->Seen(facts, 1, 3);
  EXPECT_EQ(back[0].before, 2);
  EXPECT_EQ(back[0].behind, 3);
}

// Two layers a stage, of which each worker has room for the activations of one: F 20 us, B 40 us
// and 10 us for a layer computed again. One microbatch goes through both stages and back: 120 us,
// and each worker makes the other wait for its 10 us.
TEST(MomentProgram, LetsBackwardsWaitForWhatOthersComputeAgain) {
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 2, 1), PlainLayer(), Bytes(100'000),
                                      /*layers_per_stage=*/2);
  problem.topology = Islands(2);
  ExpectMoments(problem, Nanos(140'000));
}

// F0 I0 F1 I1 W0 W1, 20 us each, of 120,000 bytes that the Ws need. 100,000 of optimizer state do
// not fit beside those of both: 40,000 are away when W0 begins, 80 us after the begin of the step,
// and take 200 us back.
TEST(MomentProgram, BringsStateHomeBehindWhatNeedsItsRoom) {
  PlanningProblem problem = QueuedWeightBackwards();
  problem.topology =
      WithHost(Islands(1), 1, {.to_host = kBytePerNano, .from_host = BytesPerSecond(200'000'000)});
  ExpectMoments(problem, Nanos(280'000));
}

// F0 F1 B0 B1: 100,000 bytes too many at B0, of which 30,000 fit on a device without a worker, over
// links as fast as one likes; the rest is computed again.
TEST(MomentProgram, HasOnlyTheMemoryOfAllDevices) {
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 1, 2), PlainLayer(), Bytes(100'000));
  problem.topology = UniformTopology(2, BytesPerSecond(1'000'000'000'000), Nanos(0));
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(30'000);
  ExpectMoments(problem, Nanos(67'000));
}

// F0 B0, 1,000 and 20 us. 40,000 bytes have no room beside what B0 needs: parameters, which are
// away as it begins and come in while it lasts, a byte a nanosecond, or activations, which take ten
// to compute again. It is even at 38,182 and 1,818: 38,182 ns are 20,000 and ten times 1,818.
TEST(MomentProgram, BringsInParametersThatAnActionFindsAway) {
  LayerProfile layer = PlainLayer();
  layer.parameters = Bytes(40'000);
  layer.forward = Nanos(1'000'000);
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 1, 1), layer, Bytes(100'000));
  problem.topology = WithHost(Islands(1), 1, {.to_host = kBytePerNano, .from_host = kBytePerNano});
  ExpectMoments(problem, Nanos(1'038'182));
}

// F0 B0, 1,000 and 20 us, of a layer with 100,000 bytes of gradients and as many of optimizer
// state, of which 150,000 fit at any time: so 50,000 of state come in behind B0, in 50 us, and as
// much of either leaves behind the step, in 100 us.
TEST(MomentProgram, SendsAwayBehindTheStepWhatIsAwayBetweenSteps) {
  LayerProfile layer = PlainLayer();
  layer.saved = {{"saved", Bytes(8)}};
  layer.gradients = Bytes(100'000);
  layer.optimizer_state = Bytes(100'000);
  layer.forward = Nanos(1'000'000);
  PlanningProblem problem =
      ProblemOf(AppendOptimizerStep(ScheduleOf("gpipe", 1, 1), {}), layer, Bytes(150'000));
  problem.topology =
      WithHost(Islands(1), 1, {.to_host = BytesPerSecond(500'000'000), .from_host = kBytePerNano});
  ExpectMoments(problem, Nanos(1'120'000));
}

// The least time for so much both ways.
double TimeFor(const UplinkRates& uplink, double out_bytes, double in_bytes, bool facets) {
  WindowProgram made{.unit = Nanos(1'000)};
  ProgramRows rows(made, Bytes(1'000));
  made.step_time = made.program.AddColumn(0, ProgramRows::kLongest, 1);
  const int out = made.program.AddColumn(out_bytes, out_bytes);
  const int in = made.program.AddColumn(in_bytes, in_bytes);
  if (facets) {
    rows.AddUplink({{made.step_time, 1}}, uplink, {{out, 1}}, {{in, 1}});
  } else {
    rows.AddUplinks(made.step_time, {uplink}, {{out, 1}}, {{in, 1}}, -1);
  }
  const auto solution = SolveLinearProgram(made.program);
  EXPECT_TRUE(solution.ok()) << solution.status();
  return solution.ok() ? solution->values[made.step_time] : -1;
}

TEST(ProgramRows, SayWithoutColumnsWhatAnUplinkCarries) {
  if (!HasLinearSolver()) GTEST_SKIP() << "skipped, because this build has no CBC";
  Dice dice(3);
  const auto rate = [&] { return BytesPerSecond(dice.Roll(1, 12) * 250'000'000LL); };
  for (int round = 0; round < 60; ++round) {
    const UplinkRates uplink{rate(), rate(), rate(), rate()};
    const double out = dice.Roll(0, 5);
    const double in = dice.Roll(0, 5);
    EXPECT_NEAR(TimeFor(uplink, out, in, true), TimeFor(uplink, out, in, false), 1e-9)
        << round << " " << out << " " << in;
  }
  // 3 out and 2 in: 2 of each together at half a byte a nanosecond, then 1 more out at 1.
  const UplinkRates uplink{kBytePerNano, kBytePerNano, BytesPerSecond(500'000'000),
                           BytesPerSecond(500'000'000)};
  EXPECT_NEAR(TimeFor(uplink, 3, 2, true), 5, 1e-9);
}

}  // namespace
}  // namespace siphon
