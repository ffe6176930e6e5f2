#include "launch/plan_job/plan_job.h"

#include <gtest/gtest.h>

#include <string>

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
