// The layer lists of models on images, which only planning knows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "planner/model_spec.h"

namespace siphon {
namespace {

ModelSpec Built(const std::string& kind) {
  ModelOptions options;
  options.kind = kind;
  auto model = BuildModelSpec(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ModelSpec{};
}

int64_t FlopsOf(const ModelSpec& model) {
  int64_t flops = 0;
  for (const LayerSpec& layer : model.layers) flops += layer.forward_flops;
  return flops;
}

TEST(Vgg16Spec, HasThePublishedParametersAndOperations) {
  const ModelSpec model = Built("vgg16");
  EXPECT_EQ(ParameterCount(model), 138'357'544);
  // 15.47 billion multiply-adds, plus a comparison for each input of a pooling.
  EXPECT_NEAR(static_cast<double>(FlopsOf(model)), 2 * 15.47e9, 0.02e9);
}

TEST(Vgg16Spec, HasTheLayersOfConfigurationD) {
  const ModelSpec model = Built("vgg16");
  ASSERT_EQ(model.layers.size(), 13u + 5 + 3);
  EXPECT_EQ(model.layers[0].name, "features.0");
  EXPECT_EQ(model.layers[2].name, "features.4");
  EXPECT_EQ(model.layers[2].outputs, (std::vector<TensorSpec>{{DType::kFloat32, {64, 112, 112}}}));
  EXPECT_EQ(model.layers[17].name, "features.30");
  EXPECT_EQ(model.layers[17].outputs, (std::vector<TensorSpec>{{DType::kFloat32, {512, 7, 7}}}));
  EXPECT_EQ(model.layers[18].parameters[0].shape, (std::vector<int64_t>{4096, 25088}));
  EXPECT_EQ(model.layers[20].name, "classifier.6");
}

TEST(Resnet50Spec, HasThePublishedParametersAndOperations) {
  const ModelSpec model = Built("resnet50");
  EXPECT_EQ(ParameterCount(model), 25'557'032);
  EXPECT_NEAR(static_cast<double>(FlopsOf(model)), 2 * 4.09e9, 0.02e9);
}

TEST(Resnet50Spec, HasSixteenBottlenecksOfHalvedImages) {
  const ModelSpec model = Built("resnet50");
  ASSERT_EQ(model.layers.size(), 2u + 16 + 1);
  EXPECT_EQ(model.layers[1].outputs, (std::vector<TensorSpec>{{DType::kFloat32, {64, 56, 56}}}));
  EXPECT_EQ(model.layers[2].name, "layer1.0");
  EXPECT_EQ(model.layers[4].outputs, (std::vector<TensorSpec>{{DType::kFloat32, {256, 56, 56}}}));
  EXPECT_EQ(model.layers[17].name, "layer4.2");
  EXPECT_EQ(model.layers[17].outputs, (std::vector<TensorSpec>{{DType::kFloat32, {2048, 7, 7}}}));
  // Only the first of a group has a projection beside it.
  EXPECT_EQ(model.layers[2].parameters.size(), 12u);
  EXPECT_EQ(model.layers[3].parameters.size(), 9u);
}

TEST(PlannedModels, AreValidListWhatTheySaveAndAreNotAmongThoseThatTrain) {
  const std::vector<std::string> trained = KnownModelKinds();
  EXPECT_EQ(KnownPlannedModelKinds().size(), 2u);
  for (const std::string& kind : KnownPlannedModelKinds()) {
    SCOPED_TRACE(kind);
    EXPECT_EQ(std::count(trained.begin(), trained.end(), kind), 0);
    const ModelSpec model = Built(kind);
    EXPECT_TRUE(ValidateModelSpec(model).ok()) << ValidateModelSpec(model);
    EXPECT_EQ(model.objective, Objective::kClassification);
    for (const LayerSpec& layer : model.layers) {
      EXPECT_TRUE(layer.memory.has_value()) << layer.name;
      EXPECT_GT(layer.forward_flops, 0) << layer.name;
    }
  }
}

TEST(PlannedModels, AreNamedWhenAKindIsUnknown) {
  ModelOptions options;
  options.kind = "vgg";
  const absl::Status status = BuildModelSpec(options).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "vgg16 (for planning only)")) << status;
}

}  // namespace
}  // namespace siphon
