#include "launch/plan_job/plan_job.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

ModelSpec FourBlockGpt() {
  return BuildModelSpec({.kind = "gpt",
                         .layers = 4,
                         .hidden = 16,
                         .heads = 2,
                         .vocabulary = 32,
                         .sequence_length = 8})
      .value();
}

JobConfig FourStages() {
  JobConfig job;
  job.pipeline.stages = 4;
  job.train.global_batch = 12;
  job.train.microbatch = 3;
  return job;
}

TEST(PlanJob, CutsSchedulesAndLowersWithTheSharedEmbeddingReduced) {
  const auto plan = PlanJob(FourStages(), FourBlockGpt(), 100);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->partition.stages.size(), 4u);
  EXPECT_EQ(plan->training.microbatches, 4);
  ASSERT_EQ(plan->shared_parameters.size(), 1u);
  EXPECT_EQ(plan->shared_parameters[0].name, "transformer.wte.weight");
  const std::string programs = ToString(plan->training);
  EXPECT_NE(programs.find("0REDUCE_GRAD"), std::string::npos);
  EXPECT_EQ(programs.find("1REDUCE_GRAD"), std::string::npos);
  EXPECT_NE(programs.find("3REDUCE_GRAD"), std::string::npos);
  EXPECT_NE(programs.find("2STEP"), std::string::npos);
}

// Whoever steps by the norm of all gradients waits for the slowest worker; others only report it.
TEST(PlanJob, LetsStepsWaitForTheNormOnlyWhereTheyNeedIt) {
  const auto end_of_stage_2 = [](const JobConfig& job) {
    const auto plan = PlanJob(job, FourBlockGpt(), 0);
    if (!plan.ok()) return std::string(plan.status().message());
    const std::vector<Action>& program = plan->training.programs[2];
    return absl::StrCat(ToString(program[program.size() - 2]), " ", ToString(program.back()));
  };
  JobConfig job = FourStages();
  EXPECT_GT(job.train.clip_norm, 0);
  EXPECT_EQ(end_of_stage_2(job), "2REDUCE_NORM 2STEP");
  job.train.clip_norm = 0;
  EXPECT_EQ(end_of_stage_2(job), "2STEP 2REDUCE_NORM");
  job.train.precision = "bf16";
  EXPECT_EQ(end_of_stage_2(job), "2STEP 2REDUCE_NORM");
  job.train.precision = "fp16";  // a step whose gradients are no numbers is skipped
  EXPECT_EQ(end_of_stage_2(job), "2REDUCE_NORM 2STEP");
}

TEST(PlanJob, EvaluatesNoMoreMicrobatchesThanTheValidationSplitHas) {
  EXPECT_EQ(PlanJob(FourStages(), FourBlockGpt(), 100)->evaluation.microbatches, 4);
  EXPECT_EQ(PlanJob(FourStages(), FourBlockGpt(), 7)->evaluation.microbatches, 2);
  EXPECT_TRUE(PlanJob(FourStages(), FourBlockGpt(), 2)->evaluation.programs.empty());
}

TEST(PlanJob, RefusesMoreStagesThanLayersByPlaceAndNumber) {
  JobConfig job = FourStages();
  job.pipeline.stages = 7;
  job.origins["pipeline.stages"] = "job.yaml:9:11";
  const auto plan = PlanJob(job, FourBlockGpt(), 0);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(),
            "job.yaml:9:11: pipeline.stages: 7 stages, but the model has 6 layers to cut; at most "
            "6 stages work");
}

JobConfig WithSchedule(const std::string& name) {
  JobConfig job = FourStages();
  job.pipeline.schedule = name;
  job.origins["pipeline.schedule"] = "job.yaml:3:13";
  return job;
}

// Workers and stages of the plan, or what is wrong.
std::string Planned(const JobConfig& job, const std::string& csv = "") {
  const auto plan = PlanJob(job, FourBlockGpt(), 0, csv);
  if (!plan.ok()) return std::string(plan.status().message());
  const absl::Status trainable = CheckTrainable(job, *plan);
  if (!trainable.ok()) return std::string(trainable.message());
  const auto workers = WorkersOf(job, csv);
  EXPECT_TRUE(workers.ok() && *workers == WorkerCount(plan->training)) << workers.status();
  return absl::StrCat(WorkerCount(plan->training), " workers, ", StageCount(plan->training),
                      " stages");
}

TEST(PlanJob, TakesAsManyChunksAsTheJobOrElseTheScheduleSays) {
  EXPECT_EQ(Planned(WithSchedule("1f1b")), "4 workers, 4 stages");
  EXPECT_EQ(Planned(WithSchedule("interleaved_1f1b")), "2 workers, 4 stages");
  JobConfig job = WithSchedule("interleaved_1f1b");
  job.pipeline.chunks = 4;
  EXPECT_EQ(Planned(job), "1 workers, 4 stages");
  job.pipeline.chunks = 3;
  job.origins["pipeline.chunks"] = "job.yaml:5:11";
  EXPECT_EQ(Planned(job),
            "job.yaml:5:11: pipeline.chunks: 4 stages cannot be dealt out in chunks of 3 a worker; "
            "stages must be a multiple of pipeline.chunks");
  job.pipeline.chunks = 5;
  EXPECT_EQ(
      Planned(job),
      "job.yaml:5:11: pipeline.chunks: 5 stages a worker, but pipeline.stages is 4; at most 4 "
      "work");
  // Other stages would help nobody there.
  job.pipeline.schedule = "1f1b";
  for (const int64_t chunks : {3, 5}) {
    job.pipeline.chunks = chunks;
    EXPECT_EQ(
        Planned(job),
        absl::StrCat("job.yaml:5:11: pipeline.chunks: schedule 1f1b takes one stage a worker, "
                     "not ",
                     chunks, " chunks"));
  }
  job = WithSchedule("zbv");
  job.pipeline.stages = 3;
  EXPECT_EQ(Planned(job),
            "default: pipeline.stages: 3 stages cannot be dealt out in chunks of 2 a worker, as "
            "many as schedule zbv has by default; stages must be a multiple of pipeline.chunks");
}

TEST(PlanJob, HandsASchedulesOptionsOnAndNoOthers) {
  JobConfig job = WithSchedule("dapple");
  job.pipeline.in_flight = 2;
  job.pipeline.warm_up = "b";
  job.pipeline.forward_pack = 2;  // harmony's
  const auto plan = PlanJob(job, FourBlockGpt(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PeakLiveActivations(plan->training), (std::vector<int>{2, 2, 2, 1}));
}

TEST(PlanJob, HandsGroupsForwardAndBackwardOn) {
  JobConfig job = WithSchedule("harmony_pp");
  job.train.global_batch = 2 * job.train.microbatch;
  job.pipeline.backward_group = 1;
  const auto plan = PlanJob(job, FourBlockGpt(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string programs = ToString(plan->training);
  EXPECT_LT(programs.find("0F1"), programs.find("2F0"));  // all, then the next stage
  EXPECT_LT(programs.find("0B0"), programs.find("2B1"));  // one after the other
}

TEST(PlanJob, TakesAScheduleFromAFile) {
  JobConfig job = WithSchedule("csv");
  job.pipeline.stages = 2;
  job.train.global_batch = 6;  // two microbatches
  const std::string one_each = "0F0,0F1,,0B0,0B1\n1F0,1I0,1F1,1W0,1B1\n";
  EXPECT_EQ(Planned(job, one_each), "2 workers, 2 stages");
  EXPECT_EQ(Planned(job, "0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1\n"), "1 workers, 2 stages");
  job.origins["pipeline.schedule_file"] = "job.yaml:4:18";
  JobConfig uneven = job;
  uneven.pipeline.stages = 3;
  uneven.train.global_batch = 3;
  EXPECT_EQ(Planned(uneven, "0F0,0B0\n1F0,2F0,2B0,1B0\n"), "2 workers, 3 stages");
  uneven.pipeline.stages = 2;
  uneven.origins["pipeline.stages"] = "job.yaml:5:11";
  EXPECT_EQ(
      Planned(uneven, "0F0,0B0\n1F0,2F0,2B0,1B0\n"),
      "job.yaml:5:11: pipeline.stages: 2 stages, but pipeline.schedule_file is for 3; write 3");
  EXPECT_EQ(Planned(job, "0F0,what"),
            "job.yaml:4:18: pipeline.schedule_file: 1:5: action 'what': does not start with the "
            "number of a stage");
  job.train.global_batch = 3;
  EXPECT_EQ(Planned(job, one_each),
            "job.yaml:4:18: pipeline.schedule_file: schedule csv: the file is for 2 workers, 2 "
            "stages and 2 microbatches, but the job has 2 workers, 2 stages (1 a worker) and 1 "
            "microbatches");
}

// global_batch counts the sequences of all replicas together.
TEST(PlanJob, DealsTheBatchOutToReplicas) {
  JobConfig job = WithSchedule("harmony_dp");
  const auto plan = PlanJob(job, FourBlockGpt(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->training.replicas, 2);
  EXPECT_EQ(plan->training.microbatches, 2);  // of 4
  job.train.global_batch = 9;
  EXPECT_EQ(Planned(job),
            "job.yaml:3:13: pipeline.schedule: 9 sequences are 3 microbatches of 3, which the 2 "
            "replicas of harmony_dp cannot share alike; train.global_batch must be a multiple of "
            "6");
  job.origins["train.microbatch"] = "job.yaml:8:15";
  EXPECT_EQ(Planned(job).substr(0, 32), "job.yaml:8:15: train.microbatch:");
  job.origins["train.global_batch"] = "job.yaml:7:17";
  EXPECT_EQ(Planned(job).substr(0, 34), "job.yaml:7:17: train.global_batch:");
  // What a replica has.
  job.train.global_batch = 12;
  job.pipeline.microbatch_group = 3;
  EXPECT_EQ(Planned(job),
            "job.yaml:3:13: pipeline.schedule: schedule harmony_dp: microbatch_group is 3; there "
            "are 2 microbatches, so give 1 to 2");
  job.pipeline.microbatch_group = 0;
  job.pipeline.backward_group = 3;
  EXPECT_EQ(Planned(job),
            "job.yaml:3:13: pipeline.schedule: schedule harmony_dp: backward_group is 3; there "
            "are 2 microbatches, so give 1 to 2");
}

TEST(PlanJob, CapacitiesAreOneForAllOrOneEach) {
  JobConfig job = WithSchedule("zbv");
  job.memory.capacity = {Bytes(1), Bytes(2)};
  EXPECT_EQ(Planned(job), "2 workers, 4 stages");
  job.memory.capacity.push_back(Bytes(3));
  EXPECT_EQ(Planned(job),
            "default: memory.capacity: lists 3 capacities for 2 workers; write one for all, or one "
            "for each");
}

TEST(CheckTrainable, RefusesWhatNeedsWeightVersionsOrReplicas) {
  EXPECT_EQ(Planned(WithSchedule("pipedream")),
            "job.yaml:3:13: pipeline.schedule: pipedream updates weights asynchronously, which "
            "workers cannot do: they keep one version of the weights; it can be planned and "
            "simulated");
  EXPECT_EQ(Planned(WithSchedule("harmony_dp")),
            "job.yaml:3:13: pipeline.schedule: harmony_dp runs 2 replicas, but workers run one "
            "copy of the pipeline; it can be planned and simulated");
}

TEST(CheckTrainable, AllowsStepsJustInTimeWithoutClippingOnly) {
  JobConfig job = WithSchedule("harmony_pp");
  job.origins["train.clip_norm"] = "job.yaml:9:14";
  EXPECT_EQ(Planned(job),
            "job.yaml:9:14: train.clip_norm: 1, but pipeline.schedule harmony_pp updates each "
            "stage before the norm of all gradients is known; write 0");
  job.train.clip_norm = 0;
  EXPECT_EQ(Planned(job), "2 workers, 4 stages");
}

TEST(PlanJob, TakesAnExplicitPartition) {
  JobConfig job = FourStages();
  job.pipeline.partition_layers = {3, 1, 1, 1};
  const auto plan = PlanJob(job, FourBlockGpt(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->partition.stages[0], (StageRange{0, 3}));
  EXPECT_EQ(plan->partition.stages[3], (StageRange{5, 6}));
}

}  // namespace
}  // namespace siphon
