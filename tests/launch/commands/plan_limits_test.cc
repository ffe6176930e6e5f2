#include "launch/commands/plan_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/planner/simulator/simulate_testing.h"

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

// The host is at it for 30 of the 40 ns in which no worker computes.
TEST(Diagnose, BlamesOptimizerStepsOnTheHost) {
  SimulatedStep step;
  step.step_time = Nanos(100);
  step.workers = {{Busy(ActionKind::kForward, 0, 60)}, {Busy(ActionKind::kForward, 10, 60)}};
  step.exposed_waits.resize(2);
  step.lanes = {{.name = "optimizer steps on the host",
                 .intervals = {Busy(ActionKind::kStep, 50, 70), Busy(ActionKind::kStep, 75, 95)},
                 .busy = Nanos(40)}};
  const StepDiagnosis diagnosis = Diagnose(step, Taking(step, 60));
  EXPECT_EQ(diagnosis.limit, StepLimit::kHostSteps);
  EXPECT_EQ(StepLimitName(diagnosis.limit), "host_steps");
  EXPECT_THAT(DiagnosisText(diagnosis, step),
              testing::StartsWith("optimizer steps on the host: they take 30 ns when all workers "
                                  "are through"));
}

// Not the busiest of all links, but the one of its own that is in use while it waits.
TEST(Diagnose, NamesTheLaneThatBinds) {
  SimulatedStep step = TwoWorkers();
  step.workers[0].insert(step.workers[0].begin() + 2,
                         {.kind = IntervalKind::kWait, .begin = Nanos(50), .end = Nanos(70)});
  const auto copy = [](int64_t begin, int64_t end) {
    return Busy(ActionKind::kForward, begin, end);
  };
  step.lanes.push_back(
      {.name = "device 5, copies to host", .intervals = {copy(0, 40)}, .busy = Nanos(40)});
  step.lanes.push_back(
      {.name = "device 5, copies from host", .intervals = {copy(52, 68)}, .busy = Nanos(16)});
  step.lanes.push_back(
      {.name = "device 0, copies from host", .intervals = {copy(50, 70)}, .busy = Nanos(20)});
  const StepDiagnosis diagnosis = Diagnose(step, Taking(step, 75), {DeviceId(5), DeviceId(0)});
  ASSERT_TRUE(diagnosis.binding.has_value());
  EXPECT_EQ(DiagnosisText(diagnosis, step),
            "swaps: worker 0 waits 20 ns for tensors on their way; while it waits for anything, "
            "device 5, "
            "copies from host is in use 80.0 %");
}

// Two workers that each swap 1200 bytes out and in again, 12 bytes a nanosecond to the host and
// back, with so many devices behind a switch.
SimulationInput TwoSwappers(int devices_per_switch) {
  StageCost cost = TenNanos();
  cost.stash = Bytes(1200);
  SimulationInput input =
      EqualStages(ParsedSchedule("0F0 0SWAP_OUT0 0SWAP_OUT_END0 0SWAP_IN0 0SWAP_IN_END0 0B0\n"
                                 "1F0 1SWAP_OUT0 1SWAP_OUT_END0 1SWAP_IN0 1SWAP_IN_END0 1B0\n"),
                  cost);
  const PcieSwitch uplink{.to_host = BytesPerSecond(12 * kGigabyte),
                          .from_host = BytesPerSecond(12 * kGigabyte)};
  input.topology = WithHost(UniformTopology(2, {}, {}), devices_per_switch, uplink);
  return input;
}

SimulatedStep TwoKeepers() {
  return Simulated(EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), TenNanos()));
}

// Worker 0 waits for its copy out from 10 to 200, to the host alone only until worker 1's begins at
// 20; for that back from 200 to 390, and for worker 1 until 420.
TEST(Diagnose, NamesTheUplinkThatTwoWorkersShare) {
  const SimulatedStep step = Simulated(TwoSwappers(2));
  const StepDiagnosis diagnosis = Diagnose(step, TwoKeepers());
  EXPECT_EQ(diagnosis.limit, StepLimit::kSwaps);
  ASSERT_TRUE(diagnosis.binding.has_value());
  EXPECT_EQ(diagnosis.binding->name, "device 0, copies to host");
  EXPECT_EQ(diagnosis.in_use, Nanos(190));
  EXPECT_EQ(diagnosis.shared, "to host of switch 0");
  EXPECT_EQ(diagnosis.slowed, Nanos(180));
  EXPECT_EQ(DiagnosisText(diagnosis, step),
            "swaps: worker 0 waits 380 ns for tensors on their way; while it waits for anything, "
            "device 0, copies to host is in use 46.3 %, and for 94.7 % of that slowed by other "
            "copies over to host of switch 0");
}

TEST(Diagnose, NamesNoUplinkThatEachHasForItself) {
  const SimulatedStep step = Simulated(TwoSwappers(1));
  const StepDiagnosis diagnosis = Diagnose(step, TwoKeepers());
  ASSERT_TRUE(diagnosis.binding.has_value());
  EXPECT_EQ(diagnosis.binding->name, "device 0, copies to host");
  EXPECT_EQ(diagnosis.shared, "");
  EXPECT_THAT(DiagnosisText(diagnosis, step), testing::EndsWith(" %"));
}

// Worker 0 lends from worker 1, which is full, and computes again besides.
TEST(DiagnosePlan, NamesLendersThatAreFull) {
  StudiedPlan studied;
  studied.kept = Taking(TwoWorkers(), 75);
  studied.step = TwoWorkers();
  studied.step->peak.resize(2);
  studied.step->peak[1][MemoryKind::kParameters] = Bytes(995);
  studied.problem.capacity = {Bytes(1000), Bytes(1000)};
  studied.plan.training.worker_of_stage = {WorkerId(0), WorkerId(1)};
  studied.plan.memory.stages.resize(2);
  studied.plan.memory.stages[0].groups = {
      {.choice = {.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(100)}}}},
      {.choice = {.placement = Placement::kRecompute}}};
  const StepDiagnosis full = DiagnosePlan(studied);
  EXPECT_EQ(full.full_lenders, std::vector<DeviceId>{DeviceId(1)});
  EXPECT_THAT(DiagnosisText(full, *studied.step),
              testing::HasSubstr("; what it lends from has no more room: device 1"));
  studied.step->peak[1][MemoryKind::kParameters] = Bytes(900);
  EXPECT_TRUE(DiagnosePlan(studied).full_lenders.empty());
}

}  // namespace
}  // namespace siphon
