#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/models/convolution.h"
#include "planner/models/layers.h"
#include "planner/models/models.h"

namespace siphon {
namespace {

// VGG16 (Simonyan and Zisserman 2014, table 1, configuration D) with the names of torchvision:
// convolutions with their activation, poolings and classifiers are layers of their own.

LayerSpec Convolution(int index, const FeatureMap& input, const FeatureMap& output) {
  constexpr int64_t kKernel = 3;
  const std::string name = absl::StrCat("features.", index);
  LayerSpec layer{name, "convolution"};
  AppendConvolution(layer.parameters, name, input.channels, output.channels, kKernel);
  layer.parameters.push_back(ZeroParameter(name + ".bias", {output.channels}));
  layer.outputs = {ShapeOf(output)};
  layer.forward_flops = ConvolutionFlops(output, input.channels, kKernel);
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInput(ShapeOf(input)), SavedOutput(ShapeOf(output))};
  DeclareBackwardWorkspace(layer, ShapeOf(input), ShapeOf(output));
  return layer;
}

// Linear, activation, dropout. Dropout at the published rate, whatever the options say.
LayerSpec Classifier(int index, const TensorSpec& input, int64_t in, int64_t out) {
  const std::string name = absl::StrCat("classifier.", index);
  LayerSpec layer{name, "classifier"};
  AppendClassifier(layer.parameters, name, in, out);
  const TensorSpec output{DType::kFloat32, {out}};
  layer.outputs = {output};
  layer.forward_flops = MatrixProductFlops(1, in, out);
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInput(input), SavedInside("activation", output),
                         SavedInside("dropout.mask", {DType::kUInt8, {out}})};
  DeclareBackwardWorkspace(layer, input, output);
  return layer;
}

LayerSpec Logits(const TensorSpec& input, int64_t in) {
  LayerSpec layer{"classifier.6", "classifier_head"};
  AppendClassifier(layer.parameters, "classifier.6", in, kImageClasses);
  layer.forward_flops = MatrixProductFlops(1, in, kImageClasses);
  const TensorSpec logits{DType::kFloat32, {kImageClasses}};
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInput(input), SavedInside("log_softmax", logits)};
  layer.memory->saved[1].precision = SavedPrecision::kFloat32;
  DeclareBackwardWorkspace(layer, input, logits);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildVgg16Spec(const ModelOptions& options) {
  struct Block {
    int64_t channels;
    int convolutions;
  };
  constexpr Block kBlocks[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  constexpr int64_t kWidth = 4096;
  std::vector<LayerSpec> layers;
  FeatureMap map;
  int index = 0;  // torchvision counts activations too
  for (const Block& block : kBlocks) {
    for (int convolution = 0; convolution < block.convolutions; ++convolution, index += 2) {
      const FeatureMap output = AfterConvolution(map, block.channels, 1);
      layers.push_back(Convolution(index, map, output));
      map = output;
    }
    const FeatureMap pooled{map.channels, map.side / 2};
    layers.push_back(MaxPool(absl::StrCat("features.", index++), map, pooled));
    map = pooled;
  }
  const TensorSpec wide{DType::kFloat32, {kWidth}};
  layers.push_back(Classifier(0, ShapeOf(map), ElementsOf(map), kWidth));
  layers.push_back(Classifier(3, wide, kWidth, kWidth));
  layers.push_back(Logits(wide, kWidth));
  return AssembleImageModel(options, std::move(layers));
}

}  // namespace siphon
