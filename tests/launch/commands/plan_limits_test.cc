#include "launch/commands/plan_limits.h"

#include <gtest/gtest.h>

#include <utility>

namespace siphon {
namespace {

Interval Busy(ActionKind kind, int64_t begin, int64_t end) {
  return {.action = {.kind = kind}, .begin = Nanos(begin), .end = Nanos(end)};
}

// 100 ns on two workers. Worker 0 computes 60, computes 10 again, waits 20 for a swap and is idle
// for 10; worker 1 computes 30, waits 50 for worker 0 and 20 for its message.
SimulatedStep TwoWorkers() {
  SimulatedStep step;
  step.step_time = Nanos(100);
  step.workers = {{Busy(ActionKind::kForward, 0, 40), Busy(ActionKind::kRecompute, 40, 50),
                   Busy(ActionKind::kBackward, 70, 90)},
                  {Busy(ActionKind::kForward, 60, 90)}};
  step.exposed_waits.resize(2);
  step.exposed_waits[0][static_cast<size_t>(WaitCause::kSwap)] = Nanos(20);
  step.exposed_waits[1][static_cast<size_t>(WaitCause::kPredecessor)] = Nanos(50);
  step.exposed_waits[1][static_cast<size_t>(WaitCause::kTransfer)] = Nanos(20);
  step.lanes = {{.name = "a", .busy = Nanos(30)}, {.name = "b", .busy = Nanos(45)}};
  return step;
}

SimulatedStep Taking(SimulatedStep step, int64_t time) {
  step.step_time = Nanos(time);
  return step;
}

TEST(SharesOfWorkers, AddUpToTheStep) {
  const std::vector<TimeShares> shares = SharesOfWorkers(TwoWorkers());
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].compute, Nanos(60));
  EXPECT_EQ(shares[0].recompute, Nanos(10));
  EXPECT_EQ(shares[0].idle, Nanos(10));
  EXPECT_EQ(shares[1].compute, Nanos(30));
  EXPECT_EQ(shares[1].idle, Nanos(0));
}

TEST(Diagnose, BlamesWhatSavingMemoryCostsMost) {
  const StepDiagnosis swaps = Diagnose(TwoWorkers(), Taking(TwoWorkers(), 75));
  EXPECT_EQ(swaps.limit, StepLimit::kSwaps);
  EXPECT_EQ(swaps.worker, 0);
  EXPECT_EQ(swaps.saving_memory, Nanos(25));
  EXPECT_EQ(DiagnosisText(swaps, TwoWorkers()),
            "swaps: worker 0 waits 20 ns for tensors on their way; the busiest link, b, is in use "
            "45.0 %");
  SimulatedStep less = TwoWorkers();
  less.exposed_waits[0][static_cast<size_t>(WaitCause::kSwap)] = Nanos(5);
  EXPECT_EQ(Diagnose(less, Taking(less, 75)).limit, StepLimit::kRecompute);
}

TEST(Diagnose, BlamesThePipelineWhereSavingMemoryIsFree) {
  const StepDiagnosis diagnosis = Diagnose(TwoWorkers(), TwoWorkers());
  EXPECT_EQ(diagnosis.limit, StepLimit::kPipeline);
  EXPECT_EQ(diagnosis.worker, 1);
  EXPECT_EQ(diagnosis.saving_memory, Nanos(0));
}

TEST(Diagnose, BlamesAWorkerThatIsAlwaysBusy) {
  SimulatedStep step = TwoWorkers();
  step.workers[0] = {Busy(ActionKind::kForward, 0, 95)};
  step.exposed_waits[0] = {};
  const StepDiagnosis diagnosis = Diagnose(step, step);
  EXPECT_EQ(diagnosis.limit, StepLimit::kCompute);
  EXPECT_EQ(diagnosis.worker, 0);
  EXPECT_EQ(StepLimitName(diagnosis.limit), "compute");
}

TEST(Diagnose, BlamesMessagesThatTakeLongerThanAllElse) {
  SimulatedStep step = TwoWorkers();
  step.exposed_waits[1][static_cast<size_t>(WaitCause::kPredecessor)] = Nanos(5);
  step.exposed_waits[1][static_cast<size_t>(WaitCause::kTransfer)] = Nanos(65);
  EXPECT_EQ(Diagnose(step, step).limit, StepLimit::kTransfers);
}

}  // namespace
}  // namespace siphon
