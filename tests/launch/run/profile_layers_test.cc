// Measured profiles.

#include "launch/run/layer_profile/profile_layers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "pipeline/torch/memory/counting_allocator.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

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

  std::string directory_;
};

TEST_P(ProfileLayersTest, MeasuresEveryLayer) {
  const auto prepared = PrepareJob(Job(), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto profile = ProfileLayers(*prepared, {.warm_up = 0, .repetitions = 1}, {});
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->model.layers.size(), prepared->model.spec.layers.size());
  EXPECT_EQ(profile->model.microbatch, 2);
  EXPECT_GT(profile->transport.copy_rate, BytesPerSecond(0));
  EXPECT_GT(profile->transport.swap_rate, BytesPerSecond(0));
  int64_t parameters = 0;
  for (size_t index = 0; index < profile->model.layers.size(); ++index) {
    const LayerProfile& layer = profile->model.layers[index];
    EXPECT_EQ(layer.name, prepared->model.spec.layers[index].name);
    EXPECT_GT(layer.forward, Nanos(0)) << layer.name;
    EXPECT_GT(layer.input_backward + layer.weight_backward, Nanos(0)) << layer.name;
    EXPECT_GT(layer.recompute, Nanos(0)) << layer.name;
    EXPECT_LE(RecomputeTime(layer), layer.forward) << layer.name;
    EXPECT_GT(layer.optimizer, Nanos(0)) << layer.name;
    EXPECT_EQ(layer.optimizer_state, layer.parameters * 2) << layer.name;
    if (const auto& memory = prepared->model.spec.layers[index].memory; memory.has_value()) {
      // Each by its name, made one after the other.
      ASSERT_GE(layer.saved.size(), memory->saved.size()) << layer.name;
      int made = 0;
      for (size_t tensor = 0; tensor < memory->saved.size(); ++tensor) {
        EXPECT_EQ(layer.saved[tensor].name, memory->saved[tensor].name);
        EXPECT_GE(layer.saved[tensor].made_ppm, made) << layer.name;
        made = layer.saved[tensor].made_ppm;
      }
      EXPECT_LE(made, 1'000'000) << layer.name;
    }
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

INSTANTIATE_TEST_SUITE_P(Models, ProfileLayersTest, testing::Values("gpt", "bert", "mlp"));

}  // namespace
}  // namespace siphon
