// Measured profiles, and what is predicted from them of memory.

#include "launch/run/profile_layers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launch/plan_job/job_memory.h"
#include "launch/run/trainer.h"
#include "pipeline/torch/counting_allocator.h"
#include "planner/memory/estimate_runtime.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

// What the model of measured bytes leaves open: which tensors wait to be sent at the peak.
constexpr double kTolerance = 0.03;

class ProfileLayersTest : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "siphon-profile-XXXXXX");
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Wide enough that activations weigh.
  JobConfig Job() const {
    JobConfig job = SmallJob(GetParam(), directory_);
    job.model.hidden = 48;
    job.data.sequence_length = 32;
    job.train.steps = 2;
    job.checkpoint.every_steps = 0;
    job.pipeline.stages = 2;
    return job;
  }

  // Of each worker, as the ledger counted them in the last step.
  std::vector<int64_t> MeasuredPeaks(const JobConfig& job) const {
    const auto outcome = Trainer(job).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    std::ifstream lines(directory_ + "/metrics.jsonl");
    std::string line;
    std::string last;
    while (std::getline(lines, line)) last = line;
    return nlohmann::json::parse(last)["peak_bytes"];
  }

  std::string directory_;
};

TEST_P(ProfileLayersTest, MeasuresEveryLayer) {
  const auto prepared = PrepareJob(Job(), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto profile = ProfileLayers(*prepared, {.warm_up = 0, .repetitions = 1}, {});
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->model.layers.size(), prepared->model.spec.layers.size());
  EXPECT_EQ(profile->model.microbatch, 2);
  int64_t parameters = 0;
  for (size_t index = 0; index < profile->model.layers.size(); ++index) {
    const LayerProfile& layer = profile->model.layers[index];
    EXPECT_EQ(layer.name, prepared->model.spec.layers[index].name);
    EXPECT_GT(layer.forward, Nanos(0)) << layer.name;
    EXPECT_GT(layer.input_backward + layer.weight_backward, Nanos(0)) << layer.name;
    EXPECT_GT(layer.optimizer, Nanos(0)) << layer.name;
    EXPECT_EQ(layer.optimizer_state, layer.parameters * 2) << layer.name;
    const bool last = index + 1 == profile->model.layers.size();
    Bytes boundary;
    for (const TensorSpec& output : prepared->model.spec.layers[index].outputs) {
      boundary += SizeOf(output) * 2;
    }
    EXPECT_GE(layer.boundary, last ? Bytes(0) : boundary) << layer.name;
    parameters += layer.parameters.value;
  }
  EXPECT_GE(parameters, 4 * ParameterCount(prepared->model.spec));  // tied ones in each use
}

TEST_P(ProfileLayersTest, PredictsPeaksWithinThreePercent) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    JobConfig job = Job();
    job.pipeline.schedule = schedule;
    const auto prepared = PrepareJob(job, {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    const auto profile = ProfileLayers(*prepared, {.warm_up = 0, .repetitions = 1}, {});
    ASSERT_TRUE(profile.ok()) << profile.status();
    auto inputs = MemoryInputsOf({job, prepared->model.spec, prepared->plan});
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    inputs->communication.clear();  // threads of one process have no rings
    inputs->profile = &profile->model;
    const auto predicted = EstimateRuntime(*inputs);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    const std::vector<int64_t> measured = MeasuredPeaks(job);
    ASSERT_EQ(measured.size(), predicted->workers.size());
    for (size_t worker = 0; worker < measured.size(); ++worker) {
      const auto real = static_cast<double>(measured[worker]);
      const auto ours = static_cast<double>(Total(predicted->workers[worker]).value);
      EXPECT_NEAR(ours, real, kTolerance * real)
          << schedule << ", worker " << worker << ": " << 100 * (ours / real - 1) << " %";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ProfileLayersTest, testing::Values("gpt", "bert", "mlp"));

}  // namespace
}  // namespace siphon
