// What layers save, in which order, and after how much of their operations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/memory/layer_uses.h"
#include "planner/model_spec.h"

namespace siphon {
namespace {

using testing::ElementsAre;

// A block of GPT-2, hidden size 8, sequence 4: 192 multiplications and additions for each of its 24
// h^2 s parts, 4 s^2 h of attention.
TEST(SavedOf, SaysWhenABlockHasMadeItsTensors) {
  const auto model = BuildModelSpec({.kind = "gpt",
                                     .layers = 1,
                                     .hidden = 8,
                                     .heads = 2,
                                     .vocabulary = 16,
                                     .sequence_length = 4});
  ASSERT_TRUE(model.ok()) << model.status();
  const LayerSpec& block = model->layers[1];
  std::vector<std::pair<std::string, int64_t>> saved;
  for (const SavedTensorSpec& tensor : block.memory->saved) {
    saved.emplace_back(tensor.name, tensor.flops_before);
  }
  // 2 * 4 * 8 * 24, + 2 * 2 * 4 * 4 * 8, + 2 * 4 * 8 * 8, + 2 * 4 * 8 * 32.
  using Saved = std::pair<std::string, int64_t>;
  EXPECT_THAT(
      saved, ElementsAre(
                 Saved("norm_1.input", 0), Saved("norm_1.mean", 0), Saved("norm_1.deviation", 0),
                 Saved("attention.qkv.input", 0), Saved("attention.query_key_value", 1536),
                 Saved("attention.log_sum", 2048), Saved("attention.output", 2048),
                 Saved("norm_2.input", 2560), Saved("norm_2.mean", 2560),
                 Saved("norm_2.deviation", 2560), Saved("perceptron.up.input", 2560),
                 Saved("perceptron.activation.input", 4608), Saved("perceptron.down.input", 4608)));
  EXPECT_EQ(block.forward_flops, 4608 + 2048);
  const std::vector<SavedTensor> made = SavedOf(*block.memory, 1, Precision::kFloat32);
  EXPECT_EQ(made[4].made_ppm, 333'333);
  EXPECT_EQ(made.back().made_ppm, 1'000'000);
  EXPECT_THAT(FirstTensorsOf({.saved = made}), ElementsAre(4, 5, 7, 11));
}

// The loss keeps the sum of its targets' weights: one number, whatever the microbatch.
TEST(SavedOf, CountsASingleNumberOnce) {
  const auto model = BuildModelSpec(
      {.kind = "mlp", .layers = 1, .hidden = 8, .vocabulary = 16, .sequence_length = 4});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    std::vector<std::pair<std::string, int64_t>> saved;
    for (const SavedTensor& tensor : SavedOf(*model->layers.back().memory, 3, precision)) {
      saved.emplace_back(tensor.name, tensor.bytes.value);
    }
    using Saved = std::pair<std::string, int64_t>;
    EXPECT_THAT(saved, ElementsAre(Saved("linear.input", 3 * 4 * 8 * ComputedBytes(precision)),
                                   Saved("loss.log_probabilities", 3 * 4 * 16 * 4),
                                   Saved("loss.total_weight", 4)));
  }
}

// Whatever the model: no tensor is made by more than the layer's operations.
TEST(SavedOf, NeverNeedsMoreThanTheLayersOperations) {
  for (const std::string& kind : KnownPlannedModelKinds()) {
    const auto model = BuildModelSpec({.kind = kind});
    if (!model.ok()) continue;
    for (const LayerSpec& layer : model->layers) {
      if (!layer.memory) continue;
      int64_t before = 0;
      for (const SavedTensorSpec& tensor : layer.memory->saved) {
        EXPECT_GE(tensor.flops_before, before) << kind << " " << layer.name << " " << tensor.name;
        before = tensor.flops_before;
      }
      EXPECT_LE(before, layer.forward_flops) << kind << " " << layer.name;
    }
  }
}

}  // namespace
}  // namespace siphon
