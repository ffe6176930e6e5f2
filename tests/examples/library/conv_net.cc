// A small convolutional network, as a list of layers of one's own, trained on synthetic images by
// two workers in this process.

#include <cstdio>
#include <string>

#include "launch/run/trainer.h"
#include "pipeline/torch/layers.h"

using siphon::DType;
using siphon::Initializer;
using siphon::LayerContext;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kClasses = 4;

// What the planner sees: names, shapes of one sample, parameters.
siphon::ModelSpec ConvNetSpec() {
  siphon::ModelSpec spec;
  spec.objective = siphon::Objective::kClassification;
  spec.input = {DType::kFloat32, {1, 16, 16}};
  spec.target = {DType::kInt64, {1}};
  spec.classes = kClasses;
  spec.layers = {
      {.name = "conv1",
       .parameters = {{"conv1.weight", {8, 1, 3, 3}, Initializer::kNormal, 0.3},
                      {"conv1.bias", {8}, Initializer::kZeros}},
       .outputs = {{DType::kFloat32, {8, 16, 16}}}},
      {.name = "conv2",
       .parameters = {{"conv2.weight", {16, 8, 3, 3}, Initializer::kNormal, 0.1},
                      {"conv2.bias", {16}, Initializer::kZeros}},
       .outputs = {{DType::kFloat32, {16, 8, 8}}}},
      {.name = "classifier",
       .parameters = {{"classifier.weight", {kClasses, 16 * 8 * 8}, Initializer::kNormal, 0.03},
                      {"classifier.bias", {kClasses}, Initializer::kZeros}}}};
  return spec;
}

// What LibTorch computes: one function a layer; the last one returns the logits.
absl::StatusOr<siphon::Model> ConvNet(const siphon::ModelOptions&) {
  const auto conv1 = [](LayerContext& layer, const Tensors& in) -> Tensors {
    return {at::relu(at::conv2d(in[0], layer.Parameter(0), layer.Parameter(1), 1, 1))};
  };
  const auto conv2 = [](LayerContext& layer, const Tensors& in) -> Tensors {
    return {at::relu(at::conv2d(in[0], layer.Parameter(0), layer.Parameter(1), 2, 1))};
  };
  const auto classifier = [](LayerContext& layer, const Tensors& in) -> Tensors {
    const at::Tensor features = layer.Dropout(in[0].flatten(1), 0.1);
    return {at::linear(features, layer.Parameter(0), layer.Parameter(1))};
  };
  return siphon::Model{ConvNetSpec(), {conv1, conv2, classifier}};
}

int main(int argc, char** argv) {
  siphon::JobConfig job;
  job.model.kind = "conv_net";
  job.data.kind = "synthetic";
  job.train = {.steps = 30, .global_batch = 32, .microbatch = 8, .learning_rate = 3e-3};
  job.pipeline.stages = 2;
  job.output.directory = argc > 1 ? argv[1] : "runs/conv_net";
  const auto outcome = siphon::Trainer(job, ConvNet).Train();
  if (!outcome.ok()) {
    std::fprintf(stderr, "conv_net: %s\n", outcome.status().ToString().c_str());
    return 1;
  }
  std::printf("loss %.4f after %d steps\n", outcome->last_loss,
              static_cast<int>(outcome->steps_done));
  return 0;
}
