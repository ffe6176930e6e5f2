#include "launch/run/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/run/record/outcome_json.h"
#include "pipeline/torch/layers.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/seated_run.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

// A folder of this test alone, empty at its start.
std::string TestFolder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = testing::TempDir() + "siphon_" + info->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

JobConfig TinyJob(const std::string& folder, const std::string& run, int64_t stages) {
  JobConfig job = SmallJob("gpt", folder + "/" + run);
  job.pipeline.stages = stages;
  return job;
}

RunOutcome MustTrain(const JobConfig& job) {
  auto outcome = Trainer(job).Train();
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *outcome : RunOutcome{};
}

TEST(Trainer, LossCheckpointAndValidationAreTheSameBitsForAnyNumberOfStages) {
  const std::string folder = TestFolder();
  const RunOutcome alone = MustTrain(TinyJob(folder, "alone", 1));
  const auto expected = CheckpointBits(alone.last_checkpoint);
  // wte once, wpe, 12 a block, 2 of the last norm; each with two moments.
  EXPECT_EQ(expected.size(), 3u * (2 + 6 * 12 + 2));
  for (const int64_t stages : {2, 4, 8}) {
    const RunOutcome split = MustTrain(TinyJob(folder, "stages" + std::to_string(stages), stages));
    EXPECT_EQ(split.last_loss, alone.last_loss) << stages;
    EXPECT_EQ(split.last_validation_loss, alone.last_validation_loss) << stages;
    EXPECT_EQ(CheckpointBits(split.last_checkpoint), expected) << stages;
  }
}

TEST(Trainer, ContinuesFromFourStagesWithTwoOrEightAndAnotherScheduleBitForBit) {
  const std::string folder = TestFolder();
  const auto expected = CheckpointBits(MustTrain(TinyJob(folder, "whole", 1)).last_checkpoint);
  MustTrain(TinyJob(folder, "first", 4));
  const std::string half = folder + "/first/checkpoints/step-00000003";
  ASSERT_TRUE(std::filesystem::exists(half));
  for (const int64_t stages : {1, 2, 8}) {
    JobConfig job = TinyJob(folder, "second" + std::to_string(stages), stages);
    job.pipeline.schedule = "gpipe";
    job.checkpoint.resume = half;
    const RunOutcome outcome = MustTrain(job);
    EXPECT_EQ(outcome.steps_done, 6);
    EXPECT_TRUE(outcome.warnings.empty());
    EXPECT_EQ(CheckpointBits(outcome.last_checkpoint), expected) << stages;
  }
}

TEST(Trainer, ResumeAutoTakesTheNewestCheckpointAndAFinishedRunTrainsNoFurther) {
  const std::string folder = TestFolder();
  JobConfig job = TinyJob(folder, "run", 2);
  const auto first = CheckpointBits(MustTrain(job).last_checkpoint);
  job.checkpoint.resume = "auto";
  const RunOutcome again = MustTrain(job);
  EXPECT_EQ(again.steps_done, 6);
  EXPECT_THAT(OutcomeJson(again), testing::HasSubstr("\"loss\": null,"));
  job.train.steps = 7;
  const RunOutcome more = MustTrain(job);
  EXPECT_EQ(more.steps_done, 7);
  EXPECT_THAT(OutcomeJson(more), testing::Not(testing::HasSubstr("\"loss\": null,")));
}

// Other microbatches are added up in another order in any case: that says less.
TEST(Trainer, NamesTheBatchThatTheCheckpointWasNotWrittenWith) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.train.schedule = "constant";
  MustTrain(job);
  job.checkpoint.resume = "auto";
  job.train.steps = 7;
  const int64_t batch = job.train.global_batch;
  const auto was = [](absl::string_view key, int64_t now, int64_t then) {
    return absl::StrCat(key, " is ", now, " and was ", then,
                        " when the checkpoint was written: results will not be bitwise those of an "
                        "uninterrupted run");
  };
  job.train.global_batch = 2 * batch;
  EXPECT_THAT(MustTrain(job).warnings,
              testing::ElementsAre(was("train.global_batch", 2 * batch, batch)));
  // The newest checkpoint is of that run now; as many microbatches, of twice as much.
  job.train.steps = 8;
  job.train.global_batch = 4 * batch;
  job.train.microbatch *= 2;
  EXPECT_THAT(MustTrain(job).warnings,
              testing::ElementsAre(
                  was("train.global_batch", 4 * batch, 2 * batch),
                  was("train.microbatch", job.train.microbatch, job.train.microbatch / 2)));
}

// Of tensors of the same shapes, so that nothing refuses them.
TEST(Trainer, NamesWhatElseDecidesTheBitsAndHasChanged) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.train.schedule = "constant";
  MustTrain(job);
  job.checkpoint.resume = "auto";
  job.train.steps += 1;
  job.train.validate_every = 3;
  EXPECT_THAT(MustTrain(job).warnings, testing::IsEmpty());
  job.train.steps += 1;
  job.train.clip_norm *= 2;
  job.model.dropout = 0.5;
  EXPECT_THAT(MustTrain(job).warnings,
              testing::UnorderedElementsAre(
                  testing::HasSubstr("train.clip_norm is "),
                  testing::HasSubstr("model.dropout is 0.5 and was 0.1 when the checkpoint was")));
}

// Where the learning rate falls until the last step, another number of steps makes it another one
// from the first on.
TEST(Trainer, NamesTheStepsOverWhichTheLearningRateFalls) {
  for (const std::string schedule : {"cosine", "linear"}) {
    JobConfig job = TinyJob(TestFolder(), "run", 2);
    job.train.schedule = schedule;
    MustTrain(job);
    job.checkpoint.resume = "auto";
    EXPECT_THAT(MustTrain(job).warnings, testing::IsEmpty());
    job.train.steps = 5;  // nothing is left to do
    EXPECT_THAT(MustTrain(job).warnings, testing::IsEmpty());
    job.train.steps = 7;
    EXPECT_THAT(MustTrain(job).warnings,
                testing::ElementsAre(absl::StrCat(
                    "train.steps, over which the learning rate falls (train.schedule ", schedule,
                    "), is 7 and was 6 when the checkpoint was written: results will not be "
                    "bitwise those of an uninterrupted run")));
  }
}

// Asked for behind step 1: in its validation, or, where there is none, in the last step.
TEST(Trainer, WritesACheckpointWhereverItIsStopped) {
  for (const int64_t validate_every : {0, 1}) {
    SCOPED_TRACE(validate_every);
    JobConfig job = TinyJob(TestFolder(), "run", 2);
    job.checkpoint.every_steps = 0;
    job.train.steps = 2;
    job.train.validate_every = validate_every;
    const auto prepared = PrepareJob(job, {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    const SeatedRun run = RunSeats(*prepared, [](WorkerSeat& seat) {
      const auto stops = std::make_shared<bool>(false);
      seat.stop_requested = [stops] { return *stops; };
      seat.at_progress = [stops](int64_t, const std::string&) { *stops = true; };
    });
    ASSERT_TRUE(run.ends[0].ok()) << run.ends[0].status();
    const int64_t steps = validate_every == 0 ? 2 : 1;
    EXPECT_EQ(run.ends[0]->steps_done, steps);
    EXPECT_EQ(run.ends[0]->checkpoint_step, steps);
    EXPECT_TRUE(std::filesystem::exists(run.ends[0]->last_checkpoint));
  }
}

TEST(Trainer, WritesOneLineOfMetricsAStepWithEveryWorkersPeak) {
  const std::string folder = TestFolder();
  const JobConfig job = TinyJob(folder, "run", 4);
  MustTrain(job);
  std::ifstream metrics(folder + "/run/metrics.jsonl");
  std::string line;
  int lines = 0;
  while (std::getline(metrics, line)) {
    ++lines;
    EXPECT_NE(line.find("\"step\":" + std::to_string(lines)), std::string::npos) << line;
    EXPECT_NE(line.find("\"grad_norm\":"), std::string::npos) << line;
    EXPECT_NE(line.find("\"peak_bytes\":["), std::string::npos) << line;
  }
  EXPECT_EQ(lines, 6);
}

TEST(Trainer, RefusesToExceedTheCapacityAndNamesTheActionAndTheBytes) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.memory.capacity = {Bytes(100'000)};
  const auto outcome = Trainer(job).Train();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kResourceExhausted) << outcome.status();
}

TEST(Trainer, TrainsAListOfLayersOfTheUsersOwn) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.model.kind = "mine";
  job.train.steps = 30;
  job.train.learning_rate = 0.05;
  const ModelFactory factory = [](const ModelOptions&) -> absl::StatusOr<Model> {
    Model model;
    model.spec = ClassifierOf(
        {{.name = "in", .parameters = {{"in.weight", {8, 6}}}, .outputs = {{DType::kFloat32, {8}}}},
         {.name = "out", .parameters = {{"out.weight", {3, 8}}}}});
    const LayerForward first = [](LayerContext& context, const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{at::tanh(at::linear(x[0], context.Parameter(0)))};
    };
    const LayerForward second = [](LayerContext& context, const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{at::linear(x[0], context.Parameter(0))};
    };
    model.forward = {first, second};
    return model;
  };
  const auto prepared = PrepareJob(job, factory);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->plan_text.model, "mine");
  const auto outcome = Trainer(job, factory).Train();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_LT(outcome->last_loss, 0.6);  // ln 3 = 1.10 is chance
}

TEST(Trainer, SaysThatNothingIsLearnedFromALossThatIsNoNumber) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.train.learning_rate = 1e30;
  job.train.steps = 4;
  const RunOutcome outcome = MustTrain(job);
  EXPECT_FALSE(std::isfinite(outcome.last_loss));
  EXPECT_THAT(outcome.warnings,
              testing::ElementsAre(testing::AllOf(
                  testing::StartsWith("the loss of step "),
                  testing::HasSubstr("nothing is learned from there on; train.learning_rate"))));
}

TEST(Trainer, SaysThatNoStepIsValidated) {
  JobConfig job = TinyJob(TestFolder(), "run", 1);
  job.train.steps = 1;
  job.train.validate_every = 1;
  job.data.samples = 64;
  job.data.validation_fraction = 0.02;
  const RunOutcome outcome = MustTrain(job);
  EXPECT_FALSE(outcome.last_validation_loss.has_value());
  EXPECT_THAT(outcome.warnings,
              testing::ElementsAre(testing::StartsWith(
                  "no step is validated: data.validation_fraction leaves 1 sample for that")));
}

// What has no deterministic algorithm is refused in the first step, and said to whom it belongs.
TEST(Trainer, RefusesALayerThatIsNotDeterministicUnlessTheJobAllowsIt) {
  JobConfig job = TinyJob(TestFolder(), "run", 2);
  job.model.kind = "mine";
  job.train.steps = 1;
  const ModelFactory factory = [](const ModelOptions&) -> absl::StatusOr<Model> {
    Model model;
    model.spec = ClassifierOf({{.name = "scatter", .outputs = {{DType::kFloat32, {6}}}},
                               {.name = "out", .parameters = {{"out.weight", {3, 6}}}}});
    const LayerForward scatter = [](LayerContext&, const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{x[0].clone().put_(at::zeros({1}, at::kLong), at::ones({1}))};
    };
    const LayerForward out = [](LayerContext& context, const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{at::linear(x[0], context.Parameter(0))};
    };
    model.forward = {scatter, out};
    return model;
  };
  const auto refused = Trainer(job, factory).Train();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("layer scatter, microbatch 0: forward: put_ has no deterministic "
                                 "algorithm; compute it another way, or write "
                                 "train.deterministic: false"));
  job.train.deterministic = false;
  const auto allowed = Trainer(job, factory).Train();
  EXPECT_TRUE(allowed.ok()) << allowed.status();
}

}  // namespace
}  // namespace siphon
