// Whole steps of synthetic stages: under every schedule that runs live, workers take the bytes and
// the time that the simulator says, to the byte and to the nanosecond of work.

#include "tests/pipeline/synthetic/synthetic_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "planner/lower_schedule.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "planner/simulator/simulate.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"

namespace siphon {
namespace {

constexpr int kLayersPerStage = 3;

// What becomes of activations between forward and backward.
enum class Leaving { kStay, kDrop, kSwap, kBoth };

struct SyntheticCase {
  std::string schedule;
  int workers = 1;
  int microbatches = 1;
  Bytes boundary;
  Leaving leaving = Leaving::kStay;
};

// A choice for a group of stage `stage`. Lenders are devices behind those of the workers, whose
// memory is nobody's books here.
GroupChoice DicedChoice(Dice& dice, Leaving leaving, int workers, Bytes bytes) {
  if (dice.Roll(0, 3) == 0) return {};
  const bool drops =
      leaving == Leaving::kDrop || (leaving == Leaving::kBoth && dice.Roll(0, 1) == 0);
  if (drops) return {.placement = Placement::kRecompute};
  if (dice.Roll(0, 1) == 0) return {.placement = Placement::kHostSwap};
  const std::vector<LenderWeight> lenders = {{DeviceId(workers), 1}, {DeviceId(workers + 1), 2}};
  return {.placement = Placement::kPeerSwap, .stripes = CutStripes(bytes, lenders, Bytes(1))};
}

// Each stage's layers cut into groups of one or two layers, all kinds of neighbours among them.
MemoryPlan DicedPlan(const ModelProfile& profile, const StagePartition& partition, Leaving leaving,
                     int workers) {
  Dice dice(7);
  MemoryPlan plan;
  for (const StageRange& stage : partition.stages) {
    StagePlan& planned = plan.stages.emplace_back();
    for (int begin = stage.begin; begin < stage.end;) {
      const int end = std::min(stage.end, begin + dice.Roll(1, 2));
      PlannedGroup group{.group = GroupOf(profile, stage, GroupKind::kActivations, {begin, end})};
      const std::vector<int> counts = FirstTensorsOf(profile.layers[begin]);
      const bool some = profile.layers[begin].forward.value % 2 == 0;
      if (some && end == begin + 1 && !counts.empty()) {
        const TensorGroup first = FirstTensorsGroup(profile, begin, counts.front());
        // Less where all others are the next layer's too.
        if (first.bytes < group.group.bytes) group.group = first;
      }
      group.choice = DicedChoice(dice, leaving, workers, group.group.bytes);
      planned.groups.push_back(std::move(group));
      begin = end;
    }
  }
  return plan;
}

// Two devices more than workers, all joined, each with a way to the host.
Topology RoomyTopology(int workers) {
  return WithHost(UniformTopology(workers + 2, BytesPerSecond(1'000'000'000), Nanos(10)), 1,
                  {.to_host = BytesPerSecond(1'000'000'000),
                   .from_host = BytesPerSecond(1'000'000'000),
                   .latency = Nanos(10)});
}

// The job, and what the simulator is asked for it; nothing where the schedule does not take the
// shape.
struct SyntheticFixture {
  SyntheticJobParts parts;
  SimulationInput input;
};

std::optional<SyntheticFixture> FixtureOf(const SyntheticCase& one) {
  const ScheduleEntry entry = FindSchedule(one.schedule).value();
  const std::optional<Schedule> built = BuildLive(
      entry, {.workers = one.workers, .chunks = entry.chunks, .microbatches = one.microbatches});
  if (!built.has_value()) return std::nullopt;
  SyntheticFixture fixture;
  SyntheticJobParts& parts = fixture.parts;
  const int stages = StageCount(*built);
  parts.partition = EvenPartition(stages, kLayersPerStage);
  parts.profile = DicedProfile(stages * kLayersPerStage, one.boundary, /*seed=*/stages);
  parts.schedule = AppendOptimizerStep(InsertCommunication(*built).value(), {});
  if (one.leaving != Leaving::kStay) {
    parts.memory = DicedPlan(parts.profile, parts.partition, one.leaving, one.workers);
    absl::StatusOr<Schedule> lowered =
        LowerMemoryPlan(parts.schedule, parts.memory,
                        {.direct = std::vector<DirectBackward>(static_cast<size_t>(stages),
                                                               DirectBackward::kDrop)});
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    parts.schedule = *std::move(lowered);
  }
  parts.make_clock = [] { return StandingClock(std::make_shared<Nanos>()); };
  fixture.input = {.schedule = parts.schedule,
                   .stages = StageCosts(parts.profile, parts.partition),
                   .layers = LayerCosts(parts.profile, parts.partition),
                   .topology = RoomyTopology(one.workers),
                   .memory = parts.memory};
  return fixture;
}

// The most of each kind by itself.
MemoryByKind MostOfEachKind(const MemoryCurve& curve) {
  MemoryByKind most;
  for (const MemoryPoint& point : curve) {
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      most.bytes[kind] = std::max(most.bytes[kind], point.bytes.bytes[kind]);
    }
  }
  return most;
}

// The same of the worker's books. Between two layers of an I, of which one keeps less for W than it
// saved and the next one more, its workspace is larger for no time: the curve does not show that.
MemoryByKind PeakOf(SyntheticJob& job, int worker, const MemoryCurve& curve) {
  MemoryByKind peak = job.ledger(worker).PeakByKind();
  if (SplitsBackward(job.schedule())) {
    const Bytes workspace = MostOfEachKind(curve)[MemoryKind::kWorkspace];
    EXPECT_GE(peak[MemoryKind::kWorkspace], workspace);
    peak[MemoryKind::kWorkspace] = workspace;
  }
  return peak;
}

// What stays from step to step.
MemoryByKind StateOf(const SimulationInput& input, WorkerId worker) {
  MemoryByKind state;
  for (const StageId stage : StagesOf(input.schedule, worker)) {
    const StageCost& cost = input.stages[static_cast<size_t>(stage.value)];
    state[MemoryKind::kParameters] += cost.parameters;
    state[MemoryKind::kGradients] += cost.gradients;
    state[MemoryKind::kOptimizer] += cost.optimizer_state;
  }
  return state;
}

// What the worker's program sends away, by where it goes.
std::map<Placement, Bytes> SentAway(const SimulationInput& input, int worker) {
  std::map<Placement, Bytes> sent;
  for (const Action& action : input.schedule.programs[worker]) {
    if (action.kind != ActionKind::kSwapOut) continue;
    const auto& [group, choice] =
        input.memory.stages[action.stage.value].groups[action.group.value];
    sent[choice.placement] += group.bytes;
  }
  return sent;
}

class SyntheticJobOf : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<SyntheticCase> Cases(Bytes boundary) {
    std::vector<SyntheticCase> cases;
    for (const int workers : {1, 2, 4}) {
      for (const int microbatches : {workers, 2 * workers}) {
        for (const Leaving leaving :
             {Leaving::kStay, Leaving::kDrop, Leaving::kSwap, Leaving::kBoth}) {
          cases.push_back({GetParam(), workers, microbatches, boundary, leaving});
        }
      }
    }
    return cases;
  }
  static std::string NameOf(const SyntheticCase& one) {
    return absl::StrCat(one.workers, " workers, ", one.microbatches, " microbatches", ", leaving ",
                        static_cast<int>(one.leaving));
  }
};

// Without boundaries, whose messages depend on when workers run, everything is equal at the fullest
// moment of each worker.
TEST_P(SyntheticJobOf, HoldsAtItsPeakWhatTheSimulatorSays) {
  int ran = 0;
  for (const SyntheticCase& one : Cases(Bytes(0))) {
    SCOPED_TRACE(NameOf(one));
    std::optional<SyntheticFixture> fixture = FixtureOf(one);
    if (!fixture.has_value()) continue;
    ++ran;
    const auto simulated = Simulate(fixture->input);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    auto job = SyntheticJob::Make(std::move(fixture->parts));
    ASSERT_TRUE(job.ok()) << job.status();
    const SyntheticStep step =
        (*job)->Run((*job)->schedule(), StepMode::kTrain, 0, {.learning_rate = 0.1});
    for (int worker = 0; worker < one.workers; ++worker) {
      ASSERT_TRUE(step.reports[worker].ok()) << step.reports[worker].status();
      EXPECT_EQ((*job)->ledger(worker).peak(), Total(simulated->peak[worker]))
          << "worker " << worker;
      EXPECT_EQ(PeakOf(**job, worker, simulated->memory[worker]),
                MostOfEachKind(simulated->memory[worker]))
          << "worker " << worker;
    }
  }
  EXPECT_GT(ran, 0);
}

// With boundaries: the rest as the simulator says, what the plan moves has moved, and the books
// are empty again.
TEST_P(SyntheticJobOf, EndsAStepWithWhatItBeganWith) {
  for (const SyntheticCase& one : Cases(Bytes(333))) {
    SCOPED_TRACE(NameOf(one));
    std::optional<SyntheticFixture> fixture = FixtureOf(one);
    if (!fixture.has_value()) continue;
    const auto simulated = Simulate(fixture->input);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    auto job = SyntheticJob::Make(std::move(fixture->parts));
    ASSERT_TRUE(job.ok()) << job.status();
    for (int number = 0; number < 2; ++number) {
      const SyntheticStep step = (*job)->Run((*job)->schedule(), StepMode::kTrain, number,
                                             {.update = number + 1, .learning_rate = 0.1});
      for (int worker = 0; worker < one.workers; ++worker) {
        ASSERT_TRUE(step.reports[worker].ok()) << step.reports[worker].status();
        EXPECT_EQ((*job)->ledger(worker).UsedByKind(), StateOf(fixture->input, WorkerId(worker)))
            << "worker " << worker;
        EXPECT_EQ(step.reports[worker]->swapped_out, SentAway(fixture->input, worker))
            << "worker " << worker;
        MemoryByKind peak = PeakOf(**job, worker, simulated->memory[worker]);
        MemoryByKind expected = MostOfEachKind(simulated->memory[worker]);
        peak[MemoryKind::kBoundary] = expected[MemoryKind::kBoundary] = Bytes(0);
        EXPECT_EQ(peak, expected) << "worker " << worker;
      }
    }
  }
}

// Busy time by the worker's own clock: passes, what is computed again, and the optimizer.
TEST_P(SyntheticJobOf, WorksAsLongAsTheSimulatorSays) {
  for (const SyntheticCase& one : Cases(Bytes(8))) {
    SCOPED_TRACE(NameOf(one));
    std::optional<SyntheticFixture> fixture = FixtureOf(one);
    if (!fixture.has_value()) continue;
    const auto simulated = Simulate(fixture->input);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    std::vector<std::shared_ptr<Nanos>> worked;
    fixture->parts.make_clock = [&worked] {
      return StandingClock(worked.emplace_back(std::make_shared<Nanos>()));
    };
    auto job = SyntheticJob::Make(std::move(fixture->parts));
    ASSERT_TRUE(job.ok()) << job.status();
    const SyntheticStep step =
        (*job)->Run((*job)->schedule(), StepMode::kTrain, 0, {.learning_rate = 0.1});
    for (int worker = 0; worker < one.workers; ++worker) {
      ASSERT_TRUE(step.reports[worker].ok()) << step.reports[worker].status();
      Nanos busy;
      for (const Interval& interval : simulated->workers[worker]) {
        if (interval.kind == IntervalKind::kBusy) busy += interval.end - interval.begin;
      }
      EXPECT_EQ(*worked[worker], busy) << "worker " << worker;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, SyntheticJobOf, testing::ValuesIn(LiveScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

// Losses, norm and state after two steps, of one stage or many, whatever the schedule.
struct SyntheticNumbers {
  std::vector<float> losses;
  std::map<std::string, std::string> state;  // "<layer>/<kind>" -> bytes
  friend bool operator==(const SyntheticNumbers&, const SyntheticNumbers&) = default;
};

SyntheticNumbers NumbersOf(SyntheticJobParts parts) {
  SyntheticNumbers numbers;
  auto job = SyntheticJob::Make(std::move(parts));
  EXPECT_TRUE(job.ok()) << job.status();
  for (int step = 0; step < 2; ++step) {
    const SyntheticStep ran = (*job)->Run((*job)->schedule(), StepMode::kTrain, step,
                                          {.update = step + 1, .learning_rate = 0.1});
    for (const auto& report : ran.reports) {
      EXPECT_TRUE(report.ok()) << report.status();
      if (!report.ok()) return numbers;
      numbers.losses.insert(numbers.losses.end(), report->losses.begin(), report->losses.end());
      numbers.losses.resize(4u * (static_cast<size_t>(step) + 1));  // all workers have the same
    }
  }
  for (int stage = 0; stage < StageCount((*job)->schedule()); ++stage) {
    for (const StateTensor& tensor : (*job)->stage(stage).State()) {
      numbers.state[absl::StrCat(tensor.name, "/", static_cast<int>(tensor.kind))] =
          std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
  }
  return numbers;
}

TEST(SyntheticJob, NumbersDependOnTheStepAlone) {
  const ModelProfile profile = DicedProfile(8, Bytes(100), 3);
  const auto parts = [&](const std::string& name, int workers, int chunks) {
    SyntheticJobParts parts;
    parts.profile = profile;
    parts.partition = EvenPartition(workers * chunks, 8 / (workers * chunks));
    const Schedule schedule =
        BuildSchedule(name, {.workers = workers, .chunks = chunks, .microbatches = 4}).value();
    parts.schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
    parts.make_clock = [] { return StandingClock(std::make_shared<Nanos>()); };
    return parts;
  };
  const SyntheticNumbers alone = NumbersOf(parts("gpipe", 1, 1));
  EXPECT_EQ(alone.losses.size(), 8u);
  EXPECT_NE(alone.losses[0], alone.losses[1]);
  EXPECT_NE(alone.losses[0], alone.losses[4]);
  EXPECT_EQ(alone.state.size(), 16u);
  EXPECT_EQ(NumbersOf(parts("1f1b", 4, 1)), alone);
  EXPECT_EQ(NumbersOf(parts("zb_h1", 2, 1)), alone);
  EXPECT_EQ(NumbersOf(parts("zbv", 4, 2)), alone);
  SyntheticJobParts other = parts("1f1b", 4, 1);
  other.schedule = AppendOptimizerStep(
      InsertCommunication(BuildSchedule("1f1b", {.workers = 4, .microbatches = 3}).value()).value(),
      {});
  EXPECT_NE(NumbersOf(std::move(other)).state, alone.state);
}

// Each worker with just the memory that the simulator says, and one byte less.
TEST(SyntheticJob, FitsIntoThePredictedPeakAndNotIntoLess) {
  for (const char* schedule : {"1f1b", "zb_h1", "interleaved_1f1b"}) {
    for (const Leaving leaving : {Leaving::kStay, Leaving::kBoth}) {
      const auto fixture = FixtureOf({schedule, 4, 8, Bytes(0), leaving});
      const auto simulated = Simulate(fixture->input);
      ASSERT_TRUE(simulated.ok()) << simulated.status();
      SyntheticJobParts parts = fixture->parts;
      for (const MemoryByKind& peak : simulated->peak) parts.capacity.push_back(Total(peak));
      auto fits = SyntheticJob::Make(parts);
      ASSERT_TRUE(fits.ok()) << fits.status();
      for (const auto& report : (*fits)->Run(parts.schedule, StepMode::kTrain, 0, {}).reports) {
        EXPECT_TRUE(report.ok()) << report.status();
      }
      for (int worker = 0; worker < 4; ++worker) {
        SyntheticJobParts less = parts;
        less.capacity[worker] -= Bytes(1);
        auto job = SyntheticJob::Make(less);
        ASSERT_TRUE(job.ok()) << job.status();
        const SyntheticStep step = (*job)->Run(less.schedule, StepMode::kTrain, 0, {});
        EXPECT_EQ(step.reports[worker].status().code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(step.reports[worker].status().message()),
                    testing::HasSubstr("asked for"));
        EXPECT_LE((*job)->ledger(worker).peak(), less.capacity[worker]);
      }
    }
  }
}

TEST(SyntheticJob, PlansOfTheTestsDoMoveAndDrop) {
  const auto fixture = FixtureOf({"1f1b", 4, 8, Bytes(1), Leaving::kBoth});
  std::map<Placement, Bytes> sent;
  int drops = 0;
  for (int worker = 0; worker < 4; ++worker) {
    for (const auto& [placement, bytes] : SentAway(fixture->input, worker)) {
      sent[placement] += bytes;
    }
    for (const Action& action : fixture->input.schedule.programs[worker]) {
      drops += action.kind == ActionKind::kDrop;
    }
  }
  EXPECT_GT(sent[Placement::kHostSwap], Bytes(1000));
  EXPECT_GT(sent[Placement::kPeerSwap], Bytes(1000));
  EXPECT_GT(drops, 10);
}

TEST(SyntheticJob, EvaluatesWithoutKeepingAnything) {
  SyntheticJobParts parts;
  parts.profile = DicedProfile(8, Bytes(100), 3);
  parts.partition = EvenPartition(4, 2);
  const Schedule training = BuildSchedule("1f1b", {.workers = 4, .microbatches = 4}).value();
  parts.schedule = AppendOptimizerStep(InsertCommunication(training).value(), {});
  parts.make_clock = [] { return StandingClock(std::make_shared<Nanos>()); };
  auto job = SyntheticJob::Make(std::move(parts));
  ASSERT_TRUE(job.ok()) << job.status();
  const Schedule evaluation = InsertCommunication(BuildForwardOnly(training, 5)).value();
  const SyntheticStep step = (*job)->Run(evaluation, StepMode::kEvaluate, 0, {});
  for (int worker = 0; worker < 4; ++worker) {
    ASSERT_TRUE(step.reports[worker].ok()) << step.reports[worker].status();
    EXPECT_EQ(step.reports[worker]->losses.size(), worker == 3 ? 5u : 0u);
    EXPECT_EQ((*job)->ledger(worker).PeakByKind()[MemoryKind::kActivations], Bytes(0));
  }
}

}  // namespace
}  // namespace siphon
