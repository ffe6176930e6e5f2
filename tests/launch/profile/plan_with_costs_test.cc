#include "launch/profile/plan_with_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/plan_job/plan_job.h"
#include "launch/plan_job/plan_rings.h"
#include "launch/profile/predict_step.h"

namespace siphon {
namespace {

// Two stages of gpt: embeddings and a block, a block and the head.
struct Job {
  Job() {
    config.model.layers = 2;
    config.model.hidden = 16;
    config.model.heads = 2;
    config.data.kind = "synthetic";
    config.data.sequence_length = 8;
    config.train.global_batch = 8;
    config.train.microbatch = 2;
    config.pipeline.stages = 2;
    config.pipeline.partition = "";
    config.pipeline.partition_layers = {2, 2};
    ModelOptions options;
    options.layers = 2;
    options.hidden = 16;
    options.heads = 2;
    options.sequence_length = 8;
    model = BuildModelSpec(options).value();
    plan = PlanJob(config, model, 0).value();
  }
  PlannedJob Planned() const { return {config, model, plan}; }

  JobConfig config;
  ModelSpec model;
  TrainingPlan plan;
};

// Every layer 1, 2 and 3 us a pass, 1 KiB saved.
ProfileFile ProfileOf(const Job& job) {
  ProfileFile file;
  file.model = {.device = "paper", .source = "measured", .microbatch = 2};
  for (const LayerSpec& layer : job.model.layers) {
    file.model.layers.push_back({.name = layer.name,
                                 .forward = Nanos(1000),
                                 .input_backward = Nanos(2000),
                                 .weight_backward = Nanos(3000),
                                 .boundary = Bytes(1024),
                                 .saved = {{"all", Bytes(1024)}}});
  }
  file.transport = {Nanos(77), BytesPerSecond(1'000'000)};
  return file;
}

TEST(PlanWithCosts, AddsUpTheLayersOfAMeasuredProfile) {
  const Job job;
  const ProfileFile profile = ProfileOf(job);
  const auto plan = PlanWithCosts(job.Planned(), {.profile = &profile});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->costs, "measured on paper");
  EXPECT_EQ(plan->link_latency, Nanos(77));
  ASSERT_EQ(plan->stages.size(), 2u);
  EXPECT_EQ(plan->stages[0].cost.forward, Nanos(2000));
  EXPECT_EQ(plan->stages[1].cost.input_backward, Nanos(4000));
  EXPECT_EQ(plan->stages[1].cost.weight_backward, Nanos(6000));
  EXPECT_EQ(plan->stages[0].cost.stash, Bytes(2048));
  EXPECT_EQ(plan->stages[0].cost.output, Bytes(1024));
  EXPECT_EQ(plan->stages[1].cost.input, Bytes(1024));
  const auto step = PredictStep(*plan);
  ASSERT_TRUE(step.ok()) << step.status();
  // Five forwards and backwards of 12 us in a row, and messages between.
  EXPECT_GE(step->step_time, Nanos(60'000));
}

TEST(PlanWithCosts, CalculatesBytesWhereNothingWasMeasured) {
  const Job job;
  const auto plan = PlanWithCosts(job.Planned(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->costs, kUnitCosts);
  EXPECT_EQ(plan->stages[0].cost.forward, kUnitTime);
  EXPECT_GT(plan->stages[0].cost.stash, Bytes(0));
  EXPECT_EQ(plan->stages[0].cost.output, Bytes(2 * 8 * 16 * 4));
  EXPECT_GT(plan->workers[0].communication, Bytes(0));
}

TEST(PlanWithCosts, TakesOverWhatWorkersOfTheMachineShare) {
  const Job job;
  ProfileFile profile = ProfileOf(job);
  profile.transport.copy_rate = BytesPerSecond(5'000'000'000);
  profile.transport.swap_rate = BytesPerSecond(3'000'000'000);
  profile.cores_together = {1000, 1900};
  for (LayerProfile& layer : profile.model.layers) layer.whole_backward = Nanos(4'500);
  const auto plan = PlanWithCosts(job.Planned(), {.profile = &profile});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->stages[0].cost.whole_backward, Nanos(9'000));
  const SimulationInput input = SimulationInputOf(*plan);
  EXPECT_EQ(input.transport.copy_rate, BytesPerSecond(5'000'000'000));
  EXPECT_EQ(input.transport.swap_rate, BytesPerSecond(3'000'000'000));
  EXPECT_EQ(input.transport.room, kMessagesPerRing);
  EXPECT_EQ(input.cores, (CoreSharing{1000, 1900}));
}

TEST(PlanWithCosts, CalculatesTimesForADevice) {
  const Job job;
  const auto device = FindDeviceSpec("V100");
  ASSERT_TRUE(device.ok()) << device.status();
  const auto plan = PlanWithCosts(job.Planned(), {.device = &*device});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->costs, "calculated for V100");
  EXPECT_NE(plan->stages[0].cost.forward, kUnitTime);
}

TEST(PlanWithCosts, KeepsCapacitiesLessTheReserve) {
  Job job;
  job.config.memory.capacity = {Bytes(1 << 20), Bytes(2 << 20)};
  job.config.memory.reserve = Bytes(1 << 10);
  const auto plan = PlanWithCosts(job.Planned(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->workers[1].capacity, Bytes((2 << 20) - (1 << 10)));
}

TEST(PlanWithCosts, RefusesAProfileOfAnotherJob) {
  const Job job;
  const auto refusal = [&job](const ProfileFile& profile) {
    const CostSource source{.profile = &profile, .profile_path = "p.yaml"};
    return std::string(PlanWithCosts(job.Planned(), source).status().message());
  };
  ProfileFile other = ProfileOf(job);
  other.model.microbatch = 4;
  EXPECT_EQ(
      refusal(other),
      "p.yaml: the profile has microbatches of 4, the job of 2; run siphon profile for this job");
  other = ProfileOf(job);
  other.model.layers[1].name = "conv";
  EXPECT_EQ(refusal(other),
            "p.yaml: layer 1 of the profile is 'conv', of the model 'transformer.h.0'; run siphon "
            "profile "
            "for this job");
  other.model.layers.pop_back();
  EXPECT_THAT(refusal(other), testing::HasSubstr("the profile has 3 layers, the model 4"));
}

}  // namespace
}  // namespace siphon
