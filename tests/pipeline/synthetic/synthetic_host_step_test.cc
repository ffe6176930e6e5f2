// Whole jobs whose optimizer steps are on the host: the same numbers as on the worker, memory to
// the byte as the simulator has it, one worker after the other on the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/home_groups.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "planner/simulator/simulate.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/pipeline/synthetic/synthetic_job.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"

namespace siphon {
namespace {

constexpr int kWorkers = 2;
constexpr int kLayersEach = 3;
constexpr Nanos kHostStep(5000);  // of a stage

// What stays where between its uses, beside the steps.
enum class Weights { kKept, kOnHost, kOnHostLayerByLayer };

SyntheticJobParts PartsOf(const std::string& name) {
  SyntheticJobParts parts;
  parts.profile = DicedProfile(kWorkers * kLayersEach, Bytes(0), /*seed=*/5);
  parts.partition = EvenPartition(kWorkers, kLayersEach);
  const Schedule schedule = BuildSchedule(name, {.workers = kWorkers, .microbatches = 4}).value();
  parts.schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
  parts.make_clock = [] { return StandingClock(std::make_shared<Nanos>()); };
  return parts;
}

// Of all stages; parameters and gradients by layers where they move.
SyntheticJobParts WithStepsOnHost(SyntheticJobParts parts, Weights weights) {
  for (const StageRange& stage : parts.partition.stages) {
    StagePlan& plan = parts.memory.stages.emplace_back();
    plan.update = UpdatePlace::kHost;
    if (weights == Weights::kKept) continue;
    for (const GroupKind kind : {GroupKind::kParameters, GroupKind::kGradients}) {
      for (int layer = stage.begin; layer < stage.end; ++layer) {
        plan.groups.push_back({.group = GroupOf(parts.profile, stage, kind, {layer, layer + 1}),
                               .choice = {.placement = Placement::kHostSwap}});
      }
    }
  }
  const auto residence = weights == Weights::kOnHostLayerByLayer ? WeightResidence::kLayerByLayer
                                                                 : WeightResidence::kWholeActions;
  absl::StatusOr<Schedule> lowered = LowerMemoryPlan(
      parts.schedule, parts.memory, {.weights = std::vector<WeightResidence>(kWorkers, residence)});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  parts.schedule = *std::move(lowered);
  parts.host_step.assign(kWorkers, kHostStep);
  return parts;
}

SimulationInput InputOf(const SyntheticJobParts& parts) {
  return {
      .schedule = parts.schedule,
      .stages = StageCosts(parts.profile, parts.partition),
      .layers = LayerCosts(parts.profile, parts.partition),
      .topology = WithHost(UniformTopology(kWorkers, BytesPerSecond(1'000'000'000), Nanos(10)), 1,
                           {.to_host = BytesPerSecond(1'000'000'000),
                            .from_host = BytesPerSecond(1'000'000'000),
                            .latency = Nanos(10)}),
      .memory = parts.memory,
      .host_step = parts.host_step,
      .frees_at_waits = true};
}

// After some steps; where parameters are away, without them.
struct AfterSteps {
  std::vector<float> losses;
  std::map<std::string, std::string> optimizer_state;  // [layer]
  std::map<std::string, std::string> parameters;
  std::vector<Bytes> peaks;  // [worker]
};

AfterSteps RunSteps(SyntheticJobParts parts, int steps) {
  AfterSteps after;
  auto job = SyntheticJob::Make(std::move(parts));
  EXPECT_TRUE(job.ok()) << job.status();
  for (int step = 0; step < steps; ++step) {
    const SyntheticStep ran = (*job)->Run((*job)->schedule(), StepMode::kTrain, step,
                                          {.update = step + 1, .learning_rate = 0.1});
    for (const auto& report : ran.reports) {
      EXPECT_TRUE(report.ok()) << report.status();
      if (report.ok()) after.losses = report->losses;
    }
  }
  for (int stage = 0; stage < kWorkers; ++stage) {
    for (const StateTensor& tensor : (*job)->stage(stage).State()) {
      const bool is_parameter = tensor.kind == StateTensor::Kind::kParameter;
      (is_parameter ? after.parameters : after.optimizer_state)[tensor.name] =
          std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    after.peaks.push_back((*job)->ledger(stage).peak());
  }
  return after;
}

// The first layer of each stage steps on the host; state of the second one is home between steps,
// of the third one away, both to step on the worker.
SyntheticJobParts WithSomeStepsOnHost(SyntheticJobParts parts) {
  for (const StageRange& stage : parts.partition.stages) {
    StagePlan& plan = parts.memory.stages.emplace_back();
    plan.update = UpdatePlace::kHost;
    for (const int layer : {stage.begin, stage.begin + 2, stage.begin + 1}) {
      plan.groups.push_back(
          {.group = GroupOf(parts.profile, stage, GroupKind::kOptimizerState, {layer, layer + 1}),
           .choice = {.placement = Placement::kHostSwap, .steps_on_device = layer != stage.begin}});
    }
  }
  const SwapTiming timing{.groups_away_between_steps = 2, .home_beside_host = true};
  absl::StatusOr<Schedule> lowered = LowerMemoryPlan(
      parts.schedule, parts.memory, {.timing = std::vector<SwapTiming>(kWorkers, timing)});
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  parts.schedule = *std::move(lowered);
  parts.host_step.assign(kWorkers, kHostStep);
  return parts;
}

class SyntheticHostSteps : public testing::TestWithParam<Weights> {};

// Every byte of three updates follows from those before, gradients and parameters included.
TEST_P(SyntheticHostSteps, GiveTheNumbersOfStepsOnTheWorker) {
  for (const char* schedule : {"1f1b", "zb_h1"}) {
    const AfterSteps kept = RunSteps(PartsOf(schedule), 3);
    const AfterSteps on_host = RunSteps(WithStepsOnHost(PartsOf(schedule), GetParam()), 3);
    EXPECT_EQ(on_host.losses, kept.losses);
    EXPECT_EQ(on_host.optimizer_state, kept.optimizer_state);
    EXPECT_EQ(kept.optimizer_state.size(), static_cast<size_t>(kWorkers * kLayersEach));
  }
}

TEST_P(SyntheticHostSteps, HoldAtMostWhatTheSimulatorSays) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const SyntheticJobParts parts = WithStepsOnHost(PartsOf(schedule), GetParam());
    const auto simulated = Simulate(InputOf(parts));
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    const AfterSteps after = RunSteps(parts, 2);
    const AfterSteps kept = RunSteps(PartsOf(schedule), 2);
    for (int worker = 0; worker < kWorkers; ++worker) {
      const Bytes predicted = Total(simulated->peak[worker]);
      EXPECT_LT(after.peaks[worker], kept.peaks[worker]) << "optimizer state is not there";
      if (GetParam() == Weights::kKept) {
        EXPECT_EQ(after.peaks[worker], predicted);
      } else {
        EXPECT_LE(after.peaks[worker], predicted);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, SyntheticHostSteps,
                         testing::Values(Weights::kKept, Weights::kOnHost,
                                         Weights::kOnHostLayerByLayer),
                         [](const auto& info) {
                           switch (info.param) {
                             case Weights::kKept:
                               return "Kept";
                             case Weights::kOnHost:
                               return "OnHost";
                             case Weights::kOnHostLayerByLayer:
                               return "OnHostLayerByLayer";
                           }
                           return "";
                         });

TEST(SyntheticHostStep, StepsTheOtherLayersOnTheWorker) {
  for (const char* schedule : {"1f1b", "gpipe", "zb_h1"}) {
    SCOPED_TRACE(schedule);
    const SyntheticJobParts parts = WithSomeStepsOnHost(PartsOf(schedule));
    EXPECT_EQ(HomeGroupsOf(parts.schedule, parts.memory).size(), static_cast<size_t>(kWorkers));
    const auto simulated = Simulate(InputOf(parts));
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    const AfterSteps kept = RunSteps(PartsOf(schedule), 3);
    const AfterSteps some = RunSteps(parts, 3);
    EXPECT_EQ(some.losses, kept.losses);
    EXPECT_TRUE(some.parameters == kept.parameters) << "the bytes differ";
    for (const auto& [layer, bytes] : kept.optimizer_state) {
      const bool away = layer == "layer2" || layer == "layer5";
      EXPECT_TRUE(some.optimizer_state.at(layer) == (away ? "" : bytes)) << layer;
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      EXPECT_LE(some.peaks[worker], Total(simulated->peak[worker]));
      EXPECT_LT(some.peaks[worker], kept.peaks[worker]);
    }
  }
}

// As in the simulator, on the workers' own clocks.
TEST(SyntheticHostStep, TakesTheHostsTime) {
  std::vector<std::shared_ptr<Nanos>> worked, kept_worked;
  const auto count_in = [](std::vector<std::shared_ptr<Nanos>>& clocks) {
    return [&clocks] { return StandingClock(clocks.emplace_back(std::make_shared<Nanos>())); };
  };
  SyntheticJobParts kept = PartsOf("1f1b");
  kept.make_clock = count_in(kept_worked);
  SyntheticJobParts parts = WithStepsOnHost(PartsOf("1f1b"), Weights::kKept);
  parts.make_clock = count_in(worked);
  const std::vector<StageCost> costs = StageCosts(kept.profile, kept.partition);
  RunSteps(kept, 1);
  RunSteps(parts, 1);
  for (int worker = 0; worker < kWorkers; ++worker) {
    const Nanos on_host = *worked[worker] - (*kept_worked[worker] - costs[worker].step);
    EXPECT_LE(on_host, kHostStep);
    EXPECT_GT(on_host, kHostStep - Nanos(kLayersEach)) << "rounded down layer by layer";
  }
}

}  // namespace
}  // namespace siphon
