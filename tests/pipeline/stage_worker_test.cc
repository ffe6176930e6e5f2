#include "pipeline/stage_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/lower_schedule.h"
#include "planner/validate_schedule.h"
#include "tests/pipeline/fake_job.h"
#include "tests/pipeline/live_schedules.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

std::string TransportName(JobTransport transport) {
  return transport == JobTransport::kInProcess ? "InProcess" : "Ring";
}

// A parameter of the first layer and the last one, one layer a stage; none when there is one stage.
std::vector<SharedParameter> TiedEnds(int stages) {
  if (stages < 2) return {};
  return {{.name = "tied",
           .uses = {{0, 0}, {stages - 1, 0}},
           .stages = {StageId(0), StageId(stages - 1)}}};
}

std::vector<StageId> StagesSharing(const std::vector<SharedParameter>& shared) {
  std::vector<StageId> stages;
  for (const SharedParameter& parameter : shared) {
    stages.insert(stages.end(), parameter.stages.begin(), parameter.stages.end());
  }
  return stages;
}

Schedule LowerForTraining(const Schedule& schedule, const std::vector<SharedParameter>& shared) {
  const absl::StatusOr<Schedule> communicating = InsertCommunication(schedule);
  EXPECT_TRUE(communicating.ok()) << communicating.status();
  Schedule lowered = AppendOptimizerStep(*communicating, StagesSharing(shared));
  const absl::Status valid = ValidateSchedule(lowered, SchedulePurpose::kTraining);
  EXPECT_TRUE(valid.ok()) << valid;
  return lowered;
}

// What FakeStage's numbers come to, from its own description.
float ExpectedLoss(int stages, int microbatch) {
  return static_cast<float>(microbatch + 1 + stages * (stages + 1) / 2);
}
float ExpectedGradient(int stage, int stages, int microbatches,
                       const std::vector<SharedParameter>& shared) {
  int gradient = microbatches;
  for (int behind = stage + 1; behind < stages; ++behind)
    gradient += microbatches * 10 * (behind + 1);
  for (const SharedParameter& parameter : shared) {
    bool used_here = false;
    int all_uses = 0;
    for (size_t use = 0; use < parameter.uses.size(); ++use) {
      used_here |= parameter.stages[use] == StageId(stage);
      all_uses += (parameter.uses[use].layer + 1) * microbatches;
    }
    if (used_here) gradient += all_uses;
  }
  return static_cast<float>(gradient);
}

// Runs one training step and compares everything that it reports and leaves with the numbers above.
void CheckTrainingStep(const Schedule& schedule, const std::vector<SharedParameter>& shared,
                       FakeJob& job, int64_t update, double clip_norm = 2) {
  const int stages = StageCount(schedule);
  const Schedule lowered = LowerForTraining(schedule, shared);
  const std::vector<float> before = [&] {
    std::vector<float> parameters;
    for (int stage = 0; stage < stages; ++stage) parameters.push_back(job.stage(stage).parameter());
    return parameters;
  }();
  const StepEnd end{.update = update, .learning_rate = 0.5, .clip_norm = clip_norm};
  const auto results = job.Run(lowered, StepMode::kTrain, end);

  double squares = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const double gradient = ExpectedGradient(stage, stages, schedule.microbatches, shared);
    squares += gradient * gradient;
  }
  const float scale = clip_norm == 0
                          ? 1.0f
                          : std::min(1.0f, static_cast<float>(clip_norm) /
                                               (static_cast<float>(std::sqrt(squares)) + 1e-6f));
  std::vector<float> losses;
  for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
    losses.push_back(ExpectedLoss(stages, microbatch));
  }
  for (size_t worker = 0; worker < results.size(); ++worker) {
    ASSERT_TRUE(results[worker].ok()) << results[worker].status();
    EXPECT_EQ(results[worker]->gradient_norm, std::sqrt(squares));
    EXPECT_EQ(results[worker]->losses, losses);
    EXPECT_EQ(results[worker]->peak_live_microbatches, PeakLiveActivations(schedule)[worker]);
  }
  for (int stage = 0; stage < stages; ++stage) {
    EXPECT_EQ(job.stage(stage).buffers(), 0) << "stage " << stage;
    EXPECT_EQ(job.stage(stage).LiveMicrobatches(), 0) << "stage " << stage;
    std::vector<int> order;
    for (const MicrobatchId microbatch : AccumulationOrder(schedule, StageId(stage))) {
      order.push_back(microbatch.value);
    }
    EXPECT_EQ(job.stage(stage).accumulated(), order) << "stage " << stage;
    const UpdateSettings& settings = job.stage(stage).updates().back();
    EXPECT_EQ(settings.update, update);
    EXPECT_EQ(settings.gradient_scale, scale);
    EXPECT_EQ(job.stage(stage).parameter(),
              before[stage] -
                  0.5f * scale * ExpectedGradient(stage, stages, schedule.microbatches, shared))
        << "stage " << stage;
  }
}

using WorkerCase =
    std::tuple<JobTransport, std::string /*schedule*/, int /*workers*/, int /*microbatches*/>;
class StageWorkerRuns : public testing::TestWithParam<WorkerCase> {};

void CheckEvaluation(const Schedule& schedule, int microbatches, FakeJob& job) {
  const auto evaluation = InsertCommunication(BuildForwardOnly(schedule, microbatches));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  const auto results = job.Run(*evaluation, StepMode::kEvaluate, {});
  for (size_t worker = 0; worker < results.size(); ++worker) {
    ASSERT_TRUE(results[worker].ok()) << results[worker].status();
    EXPECT_EQ(results[worker]->peak_live_microbatches, 0);
    const bool last = schedule.worker_of_stage.back() == WorkerId(static_cast<int>(worker));
    ASSERT_EQ(static_cast<int>(results[worker]->losses.size()), last ? microbatches : 0);
    for (size_t index = 0; index < results[worker]->losses.size(); ++index) {
      EXPECT_EQ(results[worker]->losses[index],
                ExpectedLoss(StageCount(schedule), static_cast<int>(index)));
    }
  }
}

TEST_P(StageWorkerRuns, ThreeStepsAndAnEvaluationWithTheRightNumbers) {
  const auto& [transport, name, workers, microbatches] = GetParam();
  const auto entry = FindSchedule(name);
  ASSERT_TRUE(entry.ok()) << entry.status();
  const double clip_norm = entry->update == WeightUpdate::kJustInTime ? 0 : 2;
  for (const int chunks : {1, 2, 4}) {
    SCOPED_TRACE(testing::Message() << chunks << " chunks");
    const std::optional<Schedule> schedule =
        BuildLive(*entry, {.workers = workers, .chunks = chunks, .microbatches = microbatches});
    if (!schedule.has_value()) continue;
    const std::vector<SharedParameter> shared = TiedEnds(StageCount(*schedule));
    FakeJob job(*schedule, shared, transport);
    CheckTrainingStep(*schedule, shared, job, 1, clip_norm);
    CheckTrainingStep(*schedule, shared, job, 2, clip_norm);
    CheckEvaluation(*schedule, microbatches + 2, job);
    CheckTrainingStep(*schedule, shared, job, 3, clip_norm);
  }
}

std::string CaseName(const testing::TestParamInfo<WorkerCase>& info) {
  const auto& [transport, name, workers, microbatches] = info.param;
  return absl::StrCat(TransportName(transport), "_", TestNameOf(name), "_", workers, "Workers_",
                      microbatches, "Microbatches");
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, StageWorkerRuns,
                         testing::Combine(testing::Values(JobTransport::kInProcess,
                                                          JobTransport::kRing),
                                          testing::ValuesIn(LiveScheduleNames()),
                                          testing::Values(1, 2, 3, 4, 8), testing::Values(1, 4, 7)),
                         CaseName);

class StageWorkerOn : public testing::TestWithParam<JobTransport> {};
INSTANTIATE_TEST_SUITE_P(Transport, StageWorkerOn,
                         testing::Values(JobTransport::kInProcess, JobTransport::kRing),
                         [](const auto& info) { return TransportName(info.param); });

// Stages 0 and 2 on one worker, 1 and 3 on the other: several stages on one channel.
const char kInterleaved[] =
    "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
    "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n";
// Neighbouring stages on one worker, as a V: nothing is sent between stages 1 and 2.
const char kFolded[] =
    "0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1\n"
    "1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1\n";

TEST_P(StageWorkerOn, SeveralStagesAWorkerGiveTheSameNumbers) {
  // Two parameters used all over, in orders that differ between workers; one is used twice in a
  // stage.
  const std::vector<SharedParameter> shared = {
      {.name = "everywhere",
       .uses = {{0, 0}, {1, 0}, {2, 0}, {3, 0}},
       .stages = {StageId(0), StageId(1), StageId(2), StageId(3)}},
      {.name = "twice",
       .uses = {{1, 1}, {1, 2}, {2, 1}},
       .stages = {StageId(1), StageId(1), StageId(2)}},
      {.name = "crossing", .uses = {{0, 1}, {3, 1}}, .stages = {StageId(0), StageId(3)}}};
  for (const char* text : {kInterleaved, kFolded}) {
    SCOPED_TRACE(text);
    const Schedule schedule = ParsedSchedule(text);
    FakeJob job(schedule, shared, GetParam());
    for (int64_t update = 1; update <= 3; ++update)
      CheckTrainingStep(schedule, shared, job, update);
  }
}

// Each worker fails at each of its actions in turn. Everybody must come back, and the culprit name
// its action.
TEST_P(StageWorkerOn, AnErrorAtAnyActionEndsAllWorkers) {
  for (const Schedule& schedule : {BuildSchedule("1f1b", {.workers = 3, .microbatches = 4}).value(),
                                   ParsedSchedule(kFolded)}) {
    const std::vector<SharedParameter> shared = TiedEnds(StageCount(schedule));
    const Schedule lowered = LowerForTraining(schedule, shared);
    for (size_t worker = 0; worker < lowered.programs.size(); ++worker) {
      for (size_t action = 0; action < lowered.programs[worker].size(); ++action) {
        FakeJob job(schedule, shared, GetParam());
        job.FailAt(WorkerId(static_cast<int>(worker)), static_cast<int>(action));
        const auto results = job.Run(lowered, StepMode::kTrain, {});
        const std::string place = absl::StrCat("worker ", worker, " action ", action, " ",
                                               ToString(lowered.programs[worker][action]), ": ");
        // A REDUCE_GRAD that is not its worker's last only notes itself: it cannot fail, but a
        // later one does.
        const absl::Status& status = results[worker].status();
        ASSERT_EQ(status.code(), absl::StatusCode::kInternal) << place << status;
        if (lowered.programs[worker][action].kind != ActionKind::kReduceGradient) {
          EXPECT_TRUE(absl::StartsWith(status.message(), place)) << status;
        }
        EXPECT_TRUE(absl::EndsWith(status.message(), ": injected")) << status;
        for (size_t other = 0; other < results.size(); ++other) {
          if (other == worker || results[other].ok()) continue;
          const absl::Status& ended = results[other].status();
          EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
          EXPECT_TRUE(absl::StartsWith(ended.message(), absl::StrCat("worker ", other, " a")))
              << ended;
          EXPECT_TRUE(absl::EndsWith(ended.message(), "another worker failed")) << ended;
        }
      }
    }
  }
}

TEST_P(StageWorkerOn, AWorkerThatFailedRunsNoFurtherStep) {
  const Schedule schedule = ParsedSchedule("0F0 0B0\n1F0 1B0\n");
  const Schedule lowered = LowerForTraining(schedule, {});
  FakeJob job(schedule, {}, GetParam());
  job.FailAt(WorkerId(1), 1);
  job.Run(lowered, StepMode::kTrain, {});
  job.FailAt(WorkerId(-1), -1);
  const auto results = job.Run(lowered, StepMode::kTrain, {});
  EXPECT_EQ(results[1].status(), absl::FailedPreconditionError(
                                     "worker 1 cannot go on: an earlier step ended in an error"));
}

TEST_P(StageWorkerOn, WithoutClippingGradientsAreAppliedAsTheyAre) {
  const Schedule schedule = ParsedSchedule("0F0 0B0\n1F0 1B0\n");
  FakeJob job(schedule, {}, GetParam());
  const auto results = job.Run(LowerForTraining(schedule, {}), StepMode::kTrain,
                               {.update = 1, .learning_rate = 1, .clip_norm = 0});
  ASSERT_TRUE(results[0].ok() && results[1].ok());
  EXPECT_EQ(job.stage(1).parameter(), -1);   // started from 1
  EXPECT_EQ(job.stage(0).parameter(), -21);  // 1 + 10 * 2
  EXPECT_EQ(results[0]->gradient_norm, std::sqrt(1.0 + 21.0 * 21.0));
}

TEST_P(StageWorkerOn, TheTimelineHasEveryActionInOrderWithoutOverlap) {
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 2, .microbatches = 3}).value();
  const Schedule lowered = LowerForTraining(schedule, {});
  FakeJob job(schedule, {}, GetParam());
  const auto results = job.Run(lowered, StepMode::kTrain, {});
  for (size_t worker = 0; worker < results.size(); ++worker) {
    ASSERT_TRUE(results[worker].ok()) << results[worker].status();
    Nanos end(0);
    size_t action = 0;
    for (const Interval& interval : results[worker]->timeline) {
      EXPECT_GE(interval.begin, end);
      EXPECT_GT(interval.end, interval.begin);
      end = interval.end;
      while (action < lowered.programs[worker].size() &&
             lowered.programs[worker][action] != interval.action) {
        ++action;
      }
      EXPECT_LT(action, lowered.programs[worker].size()) << ToString(interval.action);
    }
    EXPECT_FALSE(results[worker]->timeline.empty());
  }
}

// By hand: input and weight halves apart and out of order, a compound cell, stages that step as
// soon as their gradients are there, and the tied one that has to wait. The peak counts the lives
// that end in a compound cell beside the one that begins there.
TEST_P(StageWorkerOn, HalvesCompoundCellsAndEarlyStepsGiveTheSameNumbers) {
  const Schedule schedule = ParsedSchedule(
      "0F0 0F1 0F2 0I0 0I1 0W1 0I2 0W0 0W2 0STEP\n"
      "1F0 1I0 (1F1;1W0)OVERLAP_F_B 1I1 1F2 (1W1;1I2)OVERLAP_F_B 1W2 1STEP\n");
  EXPECT_EQ(PeakLiveActivations(schedule), (std::vector<int>{3, 2}));
  const std::vector<SharedParameter> shared = {};
  FakeJob job(schedule, shared, GetParam());
  CheckTrainingStep(schedule, shared, job, 1, /*clip_norm=*/0);
  EXPECT_EQ(job.stage(0).accumulated(), (std::vector<int>{1, 0, 2}));

  FakeJob tied(schedule, TiedEnds(2), GetParam());
  const Schedule lowered = LowerForTraining(schedule, TiedEnds(2));
  EXPECT_EQ(ToString(lowered.programs[0].back()), "0STEP");
  CheckTrainingStep(schedule, TiedEnds(2), tied, 1, /*clip_norm=*/2);
}

// Puts `action` right before `before`, on the worker whose program has that.
void Insert(Schedule& schedule, const std::string& before, const std::string& action) {
  for (std::vector<Action>& program : schedule.programs) {
    const auto place = std::find(program.begin(), program.end(), ParseAction(before).value());
    if (place != program.end()) program.insert(place, ParseAction(action).value());
  }
}

TEST_P(StageWorkerOn, DroppedActivationsAreThoseOfTheGroup) {
  const Schedule schedule = ParsedSchedule("0F0 0F1 0B1 0B0\n1F0 1F1 1B1 1B0\n");
  Schedule lowered = LowerForTraining(schedule, {});
  Insert(lowered, "0F0", "0DROP0.0");
  Insert(lowered, "0F0", "0DROP0.1");
  Insert(lowered, "0F1", "0DROP1.1");
  Insert(lowered, "0B1", "0RECOMPUTE1.1");
  Insert(lowered, "1F1", "1DROP1.0");
  FakeJob job(schedule, {}, GetParam());
  for (const auto& result : job.Run(lowered, StepMode::kTrain, {.clip_norm = 2})) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->losses, (std::vector<float>{ExpectedLoss(2, 0), ExpectedLoss(2, 1)}));
  }
  EXPECT_EQ(job.stage(0).memory_calls(),
            (std::vector<std::string>{"drop 0 [0, 1)", "drop 0 [1, 2)", "drop 1 [1, 2)",
                                      "recompute 1 [1, 2)"}));
  EXPECT_EQ(job.stage(1).memory_calls(), (std::vector<std::string>{"drop 1 [2, 3)"}));
}

// Everything leaves and comes back, in every legal order of the actions; the fake stage looks at
// what it gets back.
TEST_P(StageWorkerOn, GroupsComeBackAsTheyLeft) {
  const Schedule schedule = ParsedSchedule("0F0 0F1 0B1 0B0\n1F0 1B0 1F1 1B1\n");
  Schedule lowered = LowerForTraining(schedule, {});
  Insert(lowered, "0F0", "0SWAP_OUT0.0");
  Insert(lowered, "0F0", "0SWAP_OUT0.1");
  Insert(lowered, "0F1", "0SWAP_OUT_END0.0");
  Insert(lowered, "0F1", "0SWAP_OUT_END0.1");
  Insert(lowered, "0B1", "0SWAP_OUT1.1");  // behind its forward
  Insert(lowered, "0B1", "0SWAP_OUT_END1.1");
  Insert(lowered, "0B1", "0SWAP_IN0.0");  // the first to leave comes back first
  Insert(lowered, "0B1", "0SWAP_IN1.1");
  Insert(lowered, "0B0", "0SWAP_IN0.1");
  Insert(lowered, "0B0", "0SWAP_IN_END0.1");
  FakeJob job(schedule, {}, GetParam(), &lowered);
  for (int step = 0; step < 3; ++step) {
    const auto results = job.Run(lowered, StepMode::kTrain, {.clip_norm = 2});
    for (const auto& result : results) {
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->losses, (std::vector<float>{ExpectedLoss(2, 0), ExpectedLoss(2, 1)}));
    }
    EXPECT_EQ(results[0]->swapped_out,
              (std::map<Placement, Bytes>{{Placement::kHostSwap, Bytes(32)},
                                          {Placement::kPeerSwap, Bytes(64)}}));
    EXPECT_EQ(results[1]->swapped_out, (std::map<Placement, Bytes>{}));
  }
}

}  // namespace
}  // namespace siphon
