#include "planner/performance/profile_from_first_principles.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/match.h"

namespace siphon {
namespace {

// A billion operations and a billion bytes a second: an operation or a byte takes a nanosecond.
DeviceSpec NanosecondDevice() {
  DeviceSpec device;
  device.name = "test";
  device.fp32_flops = 1'000'000'000;
  device.bf16_flops = 4'000'000'000;
  device.fp16_flops = 4'000'000'000;
  device.memory_bandwidth = BytesPerSecond(1'000'000'000);
  device.launch_overhead = Nanos(7);
  return device;
}

TensorSpec Floats(int64_t count) { return {DType::kFloat32, {count}}; }

// Layer "a": 4 weights, 100 operations, keeps its input (3 floats), one tensor of its own (5) and
// its output (2). Layer "b": no weights, 1 operation, keeps its input.
ModelSpec TwoLayers() {
  ModelSpec model;
  model.options.kind = "two";
  model.input = Floats(3);
  LayerSpec a{"a", "test"};
  a.parameters = {{"a.weight", {4}}};
  a.outputs = {Floats(2)};
  a.forward_flops = 100;
  a.memory = LayerMemory{};
  a.memory->saved = {{.name = "input",
                      .sample = Floats(3),
                      .storage = SavedStorage::kInput,
                      .kept_for_weights = true},
                     {.name = "own", .sample = Floats(5)},
                     {.name = "output", .sample = Floats(2), .storage = SavedStorage::kOutput}};
  a.memory->backward = {{.per_sample = Bytes(6), .fixed = Bytes(1)}};
  LayerSpec b{"b", "test"};
  b.forward_flops = 1;
  b.memory = LayerMemory{};
  b.memory->saved = {{.name = "input", .sample = Floats(2), .storage = SavedStorage::kInput}};
  model.layers = {a, b};
  return model;
}

TEST(FirstPrinciples, TwoLayersByHand) {
  const auto profile =
      ProfileFromFirstPrinciples(TwoLayers(), NanosecondDevice(), 2, Precision::kFloat32);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->source, "calculated");
  const LayerProfile& a = profile->layers[0];
  // 200 operations against 24 in + 16 weights + 16 out + 2 x 40 own = 136 bytes; three kernels.
  EXPECT_EQ(a.forward, Nanos(200 + 3 * 7));
  EXPECT_EQ(a.input_backward, Nanos(0));  // the first layer
  EXPECT_EQ(a.weight_backward, Nanos(200 + 3 * 7));
  // Adam: (16 weights + 32 moments) twice and 16 of gradients.
  EXPECT_EQ(a.optimizer, Nanos(2 * 48 + 16 + 7));
  EXPECT_EQ(a.parameters, Bytes(16));
  EXPECT_EQ(a.gradients, Bytes(16));
  EXPECT_EQ(a.optimizer_state, Bytes(32));
  EXPECT_EQ(a.boundary, Bytes(16));
  EXPECT_EQ(SavedBytes(a), Bytes(2 * 4 * (3 + 5 + 2)));
  EXPECT_EQ(a.kept_for_weights, Bytes(24));
  EXPECT_EQ(a.backward_workspace, Bytes(13));
  const LayerProfile& b = profile->layers[1];
  // 2 operations against 16 bytes in; nothing to write.
  EXPECT_EQ(b.forward, Nanos(16 + 7));
  EXPECT_EQ(b.input_backward, Nanos(16 + 7));
  EXPECT_EQ(b.weight_backward, Nanos(0));
  EXPECT_EQ(b.optimizer, Nanos(0));
  EXPECT_TRUE(b.saved.empty());  // its input is the output that "a" keeps
}

TEST(FirstPrinciples, SixteenBitsHalveWhatIsSavedAndKeepMasterWeights) {
  const auto profile =
      ProfileFromFirstPrinciples(TwoLayers(), NanosecondDevice(), 2, Precision::kBFloat16);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(SavedBytes(profile->layers[0]), Bytes(2 * 2 * (3 + 5 + 2)));
  EXPECT_EQ(profile->layers[0].parameters, Bytes(8));
  EXPECT_EQ(profile->layers[0].optimizer_state, Bytes(4 * 12));
  // 200 operations at four a nanosecond take 50, 68 bytes take 68.
  EXPECT_EQ(profile->layers[0].forward, Nanos(68 + 21));
}

// What the loss saves once, however many samples there are: the total weight of the classes.
Bytes SavedOncePerMicrobatch(const LayerProfile& layer) {
  Bytes once;
  for (const SavedTensor& tensor : layer.saved) {
    if (tensor.name == "loss.total_weight") once += tensor.bytes;
  }
  return once;
}

TEST(FirstPrinciples, EveryModelTakesLongerForMoreSamplesAndSavesInProportion) {
  std::vector<std::string> kinds = KnownModelKinds();
  for (const std::string& kind : KnownPlannedModelKinds()) kinds.push_back(kind);
  const DeviceSpec device = *FindDeviceSpec("A100");
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    ModelOptions options;
    options.kind = kind;
    const ModelSpec model = *BuildModelSpec(options);
    const auto one = ProfileFromFirstPrinciples(model, device, 1, Precision::kFloat32);
    const auto eight = ProfileFromFirstPrinciples(model, device, 8, Precision::kFloat32);
    ASSERT_TRUE(one.ok() && eight.ok()) << one.status() << eight.status();
    for (size_t layer = 0; layer < model.layers.size(); ++layer) {
      EXPECT_GE(eight->layers[layer].forward, one->layers[layer].forward);
      EXPECT_GE(eight->layers[layer].weight_backward, one->layers[layer].weight_backward);
      const Bytes once = SavedOncePerMicrobatch(one->layers[layer]);
      EXPECT_EQ(SavedBytes(eight->layers[layer]) - once,
                (SavedBytes(one->layers[layer]) - once) * 8);
      EXPECT_EQ(eight->layers[layer].parameters, one->layers[layer].parameters);
    }
  }
}

TEST(FirstPrinciples, Resnet50OnV100TrainsAtThePublishedRate) {
  // The achieved share of fp32 was set by about 390 images/s; memory-bound layers take a little.
  ModelOptions options;
  options.kind = "resnet50";
  const auto profile = ProfileFromFirstPrinciples(*BuildModelSpec(options), *FindDeviceSpec("V100"),
                                                  64, Precision::kFloat32);
  ASSERT_TRUE(profile.ok()) << profile.status();
  Nanos step;
  for (const LayerProfile& layer : profile->layers) {
    step += layer.forward + layer.input_backward + layer.weight_backward + layer.optimizer;
  }
  EXPECT_NEAR(64e9 / static_cast<double>(step.value), 390, 40);
}

TEST(FirstPrinciples, ALayerWithoutAnySourceOfActivationsIsNamed) {
  ModelSpec model = TwoLayers();
  model.layers[1].memory.reset();
  const absl::Status status =
      ProfileFromFirstPrinciples(model, NanosecondDevice(), 1, Precision::kFloat32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StartsWith(status.message(), "layer b (kind 'test') does not list")) << status;
}

TEST(FirstPrinciples, RefusesMicrobatchesThatCannotBeCounted) {
  const auto error = [](int64_t microbatch) {
    return ProfileFromFirstPrinciples(TwoLayers(), NanosecondDevice(), microbatch,
                                      Precision::kFloat32)
        .status();
  };
  EXPECT_EQ(error(0).message(), "microbatch 0 must be at least 1 sample");
  EXPECT_EQ(error(int64_t{1} << 62).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace siphon
