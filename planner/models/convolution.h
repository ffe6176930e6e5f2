#ifndef SIPHON_PLANNER_MODELS_CONVOLUTION_H_
#define SIPHON_PLANNER_MODELS_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/model_spec.h"

namespace siphon {

// Pieces of models on images, as layer lists for planning (they have no LibTorch builders). The
// published ImageNet shapes, whatever sizes the options give: 3 x 224 x 224 in, 1000 classes out.

inline constexpr int64_t kImageClasses = 1000;

// A square image or feature map of one sample.
struct FeatureMap {
  int64_t channels = 3;
  int64_t side = 224;
};

TensorSpec ShapeOf(const FeatureMap& map);  // F32[channels, side, side]
int64_t ElementsOf(const FeatureMap& map);

// What a convolution with padding kernel / 2 makes of `input`.
FeatureMap AfterConvolution(const FeatureMap& input, int64_t channels, int64_t stride);

// Appends "<prefix>.weight" [out, in, kernel, kernel], drawn as in He et al. 2015, equation 10.
void AppendConvolution(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                       int64_t out, int64_t kernel);
// Appends a Linear's weight and bias, for classifiers.
void AppendClassifier(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                      int64_t out);
int64_t ConvolutionFlops(const FeatureMap& output, int64_t in, int64_t kernel);

SavedTensorSpec SavedInput(const TensorSpec& sample);   // a weight gradient needs it as well
SavedTensorSpec SavedOutput(const TensorSpec& sample);  // of an activation done in place
SavedTensorSpec SavedInside(std::string name, const TensorSpec& sample);

// Max pooling: keeps its input and, for each output, where it came from.
LayerSpec MaxPool(std::string name, const FeatureMap& input, const FeatureMap& output);

// Workspace of a backward that holds, beyond what is saved and the gradient of its output, the
// gradients of two tensors at once, and those of the layer's parameters. Workspaces of the
// convolutions' own algorithms are not known here.
void DeclareBackwardWorkspace(LayerSpec& layer, const TensorSpec& a, const TensorSpec& b);

// An image classifier of these layers.
ModelSpec AssembleImageModel(const ModelOptions& options, std::vector<LayerSpec> layers);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_CONVOLUTION_H_
