#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/models/convolution.h"
#include "planner/models/layers.h"
#include "planner/models/models.h"

namespace siphon {
namespace {

// ResNet-50 (He et al. 2016, table 1) with the names of torchvision and the stride in the 3 x 3
// convolution, as there: stem, pooling, sixteen bottlenecks and the head are the layers.

constexpr int64_t kExpansion = 4;

// A convolution without bias and its batch norm. The norm keeps its input; its statistics, a few
// numbers a channel and batch, are not counted.
void AppendNormedConvolution(LayerSpec& layer, const std::string& convolution,
                             const std::string& norm, const FeatureMap& input,
                             const FeatureMap& output, int64_t kernel) {
  AppendConvolution(layer.parameters, convolution, input.channels, output.channels, kernel);
  AppendLayerNorm(layer.parameters, norm, output.channels);  // the same two parameters
  layer.forward_flops += ConvolutionFlops(output, input.channels, kernel);
  layer.memory->saved.push_back(SavedInside(convolution, ShapeOf(output)));
}

LayerSpec Stem(const FeatureMap& input, const FeatureMap& output) {
  LayerSpec layer{"stem", "resnet_stem"};
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInput(ShapeOf(input))};
  AppendNormedConvolution(layer, "conv1", "bn1", input, output, 7);
  layer.memory->saved.push_back(SavedOutput(ShapeOf(output)));
  layer.outputs = {ShapeOf(output)};
  DeclareBackwardWorkspace(layer, ShapeOf(input), ShapeOf(output));
  return layer;
}

LayerSpec Bottleneck(const std::string& name, const FeatureMap& input, int64_t width,
                     int64_t stride) {
  const FeatureMap narrow{width, input.side};
  const FeatureMap strided = AfterConvolution(narrow, width, stride);
  const FeatureMap output{width * kExpansion, strided.side};
  LayerSpec layer{name, "resnet_bottleneck"};
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInput(ShapeOf(input))};
  const auto saved_activation = [&](const char* activation, const FeatureMap& map) {
    layer.memory->saved.push_back(SavedInside(name + activation, ShapeOf(map)));
    layer.memory->saved.back().kept_for_weights = true;  // the next convolution's input
  };
  AppendNormedConvolution(layer, name + ".conv1", name + ".bn1", input, narrow, 1);
  saved_activation(".relu1", narrow);
  AppendNormedConvolution(layer, name + ".conv2", name + ".bn2", narrow, strided, 3);
  saved_activation(".relu2", strided);
  AppendNormedConvolution(layer, name + ".conv3", name + ".bn3", strided, output, 1);
  if (stride != 1 || input.channels != output.channels) {
    AppendNormedConvolution(layer, name + ".downsample.0", name + ".downsample.1", input, output,
                            1);
  }
  layer.memory->saved.push_back(SavedOutput(ShapeOf(output)));
  layer.outputs = {ShapeOf(output)};
  DeclareBackwardWorkspace(layer, ShapeOf(input), ShapeOf(output));
  return layer;
}

// Average over the image, logits, loss. Averaging keeps nothing of its input.
LayerSpec Head(int64_t channels) {
  const TensorSpec pooled{DType::kFloat32, {channels}};
  const TensorSpec logits{DType::kFloat32, {kImageClasses}};
  LayerSpec layer{"fc", "resnet_head"};
  AppendClassifier(layer.parameters, "fc", channels, kImageClasses);
  layer.forward_flops = MatrixProductFlops(1, channels, kImageClasses);
  layer.memory = LayerMemory{};
  layer.memory->saved = {SavedInside("pooled", pooled), SavedInside("log_softmax", logits)};
  layer.memory->saved[0].kept_for_weights = true;
  layer.memory->saved[1].precision = SavedPrecision::kFloat32;
  DeclareBackwardWorkspace(layer, pooled, logits);
  return layer;
}

}  // namespace

absl::StatusOr<ModelSpec> BuildResnet50Spec(const ModelOptions& options) {
  struct Group {
    int64_t width;
    int blocks;
  };
  constexpr Group kGroups[] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  const FeatureMap image;
  FeatureMap map = AfterConvolution(image, kGroups[0].width, 2);
  std::vector<LayerSpec> layers = {Stem(image, map)};
  const FeatureMap pooled{map.channels, map.side / 2};
  layers.push_back(MaxPool("maxpool", map, pooled));
  map = pooled;
  for (size_t group = 0; group < std::size(kGroups); ++group) {
    for (int block = 0; block < kGroups[group].blocks; ++block) {
      const int64_t stride = group > 0 && block == 0 ? 2 : 1;
      const std::string name = absl::StrCat("layer", group + 1, ".", block);
      layers.push_back(Bottleneck(name, map, kGroups[group].width, stride));
      map = AfterConvolution(map, kGroups[group].width * kExpansion, stride);
    }
  }
  layers.push_back(Head(map.channels));
  return AssembleImageModel(options, std::move(layers));
}

}  // namespace siphon
