#include "launch/run/record/plan_deviation.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/run/record/compare_step.h"
#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

// Two workers for 100 ns: busy 60 and 40, the first waits 10 for copies, the second 30 for
// messages.
SimulatedStep Predicted() {
  SimulatedStep step;
  step.step_time = Nanos(100);
  step.workers = {{{.kind = IntervalKind::kBusy, .begin = Nanos(0), .end = Nanos(60)}},
                  {{.kind = IntervalKind::kBusy, .begin = Nanos(30), .end = Nanos(70)}}};
  step.exposed_waits.resize(2);
  step.exposed_waits[0][static_cast<size_t>(WaitCause::kSwap)] = Nanos(10);
  step.exposed_waits[1][static_cast<size_t>(WaitCause::kPredecessor)] = Nanos(30);
  step.peak.resize(2);
  step.peak[0][MemoryKind::kActivations] = Bytes(1000);
  step.peak[1][MemoryKind::kActivations] = Bytes(2000);
  return step;
}

StepMetrics Measured(int64_t step, Nanos duration, Nanos busy, Nanos swap_wait, Nanos other) {
  StepMetrics metrics{.step = step, .duration = duration};
  metrics.workers = {
      {.peak = Bytes(1000), .busy = busy, .wait = swap_wait + other, .swap_wait = swap_wait},
      {.peak = Bytes(2000), .busy = Nanos(40), .wait = Nanos(30)}};
  return metrics;
}

// What is said of nine equal steps, all together.
std::string SaidOfNine(bool times_known, Nanos duration, Nanos busy, Nanos swap_wait, Nanos other) {
  PlanDeviation deviation(Predicted(), {.times = times_known, .memory = true});
  std::string said;
  for (int64_t step = 1; step <= 20; ++step) {
    const auto note = deviation.Note(Measured(step, duration, busy, swap_wait, other));
    if (note.has_value()) said += *note + "\n";
  }
  return said;
}

TEST(PlanDeviation, SaysNothingOfStepsAsPredicted) {
  EXPECT_EQ(SaidOfNine(true, Nanos(125), Nanos(85), Nanos(10), Nanos(30)), "");
}

TEST(PlanDeviation, NamesWhatGrewByMostOnce) {
  EXPECT_EQ(SaidOfNine(true, Nanos(130), Nanos(90), Nanos(10), Nanos(30)),
            "steps take 130 ns, 30 % longer than the predicted 100 ns: computing takes longer than "
            "profiled\n");
  EXPECT_EQ(
      SaidOfNine(true, Nanos(150), Nanos(60), Nanos(60), Nanos(30)),
      "steps take 150 ns, 50 % longer than the predicted 100 ns: copies of what is parked take "
      "longer\n");
  EXPECT_EQ(
      SaidOfNine(true, Nanos(200), Nanos(60), Nanos(10), Nanos(130)),
      "steps take 200 ns, 100 % longer than the predicted 100 ns: messages and waits for other "
      "workers take longer\n");
}

TEST(PlanDeviation, DoesNotJudgeTimesByAssumedCosts) {
  EXPECT_EQ(SaidOfNine(false, Nanos(900), Nanos(90), Nanos(10), Nanos(30)), "");
}

TEST(PlanDeviation, SaysOnceWhoHoldsMoreThanPredicted) {
  PlanDeviation deviation(Predicted(), {.memory = true});
  PlanDeviation unknowing(Predicted(), {});
  StepMetrics step = Measured(4, Nanos(100), Nanos(60), Nanos(10), Nanos(30));
  step.workers[1].peak = Bytes(2099);  // five percent is within
  EXPECT_EQ(deviation.Note(step), std::nullopt);
  step.workers[1].peak = Bytes(2110);
  EXPECT_EQ(deviation.Note(step),
            "worker 1 held 2.06 KiB in step 4, 5.5 % more than the predicted 1.95 KiB");
  EXPECT_EQ(deviation.Note(step), std::nullopt);
  EXPECT_EQ(unknowing.Note(step), std::nullopt);
}

TEST(CompareKinds, AddsUpAllWorkersKindByKind) {
  const Action forward{.kind = ActionKind::kForward};
  const Action swap{.kind = ActionKind::kSwapInEnd};
  const Action receive{.kind = ActionKind::kReceiveForward};
  const std::vector<WorkerTimeline> measured = {
      {{forward, IntervalKind::kBusy, Nanos(0), Nanos(70)},
       {swap, IntervalKind::kWait, Nanos(70), Nanos(95)}},
      {{receive, IntervalKind::kWait, Nanos(0), Nanos(28)},
       {forward, IntervalKind::kBusy, Nanos(28), Nanos(70)}}};
  const std::vector<KindTime> kinds = CompareKinds(Predicted(), measured);
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].name, "F");
  EXPECT_EQ(kinds[0].predicted, Nanos(100));
  EXPECT_EQ(kinds[0].measured, Nanos(112));
  EXPECT_EQ(kinds[1].name, "waits for copies");
  EXPECT_EQ(kinds[1].Difference(), Nanos(15));
  EXPECT_EQ(kinds[2].name, "other waits");
  EXPECT_EQ(kinds[2].Difference(), Nanos(-2));
  ASSERT_NE(LargestDifference(kinds), nullptr);
  EXPECT_EQ(LargestDifference(kinds)->name, "waits for copies");
  EXPECT_EQ(LargestDifference({}), nullptr);
}

}  // namespace
}  // namespace siphon
