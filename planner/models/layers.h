#ifndef SIPHON_PLANNER_MODELS_LAYERS_H_
#define SIPHON_PLANNER_MODELS_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planner/model_spec.h"
#include "planner/models/layer_tape.h"

namespace siphon {

// Pieces that the built-in models' layers are made of.

// Published standard deviation of gpt's and bert's initial weights.
inline constexpr double kTransformerDeviation = 0.02;

ParameterSpec NormalParameter(std::string name, std::vector<int64_t> shape,
                              double standard_deviation = kTransformerDeviation);
ParameterSpec ZeroParameter(std::string name, std::vector<int64_t> shape);

// Appends "<prefix>.weight" [out, in] (torch's Linear) and "<prefix>.bias" [out].
void AppendLinear(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                  int64_t out, double standard_deviation = kTransformerDeviation);
// Appends "<prefix>.weight" [in, out] (Hugging Face's Conv1D, as GPT-2 stores it) and
// "<prefix>.bias" [out].
void AppendConv1D(std::vector<ParameterSpec>& parameters, absl::string_view prefix, int64_t in,
                  int64_t out, double standard_deviation = kTransformerDeviation);
// Appends "<prefix>.weight" of ones and "<prefix>.bias" of zeros, both [width].
void AppendLayerNorm(std::vector<ParameterSpec>& parameters, absl::string_view prefix,
                     int64_t width);

// Operations of a product [rows, inner] x [inner, columns].
int64_t MatrixProductFlops(int64_t rows, int64_t inner, int64_t columns);
// Matrix products of one transformer block on one sample: projections, perceptron of four times the
// width, attention scores.
int64_t TransformerBlockFlops(const ModelOptions& options);

// Attention of a block over [sequence, hidden] each, as pipeline/torch does it: fused, or written
// out with `flash_attention: false` or dropout. Forgets the three.
enum class Causality { kCausal, kBidirectional };
LayerTape::Value TapeAttention(LayerTape& tape, LayerTape::Value query, LayerTape::Value key,
                               LayerTape::Value value, const ModelOptions& options,
                               Causality causality);
// `x` with dropout; forgets x where it made another.
LayerTape::Value TapeDropout(LayerTape& tape, const std::string& name, LayerTape::Value x,
                             double probability);

// F32[sequence_length, hidden]: what flows between the layers of one sample.
std::vector<TensorSpec> HiddenStates(const ModelOptions& options);
// I64[sequence_length].
TensorSpec TokenSequence(const ModelOptions& options);

// The layers that make a model on tokens: `block` is called with 0 .. options.layers - 1.
struct TokenModelLayers {
  LayerSpec (*embedding)(const ModelOptions& options);
  LayerSpec (*block)(const ModelOptions& options, int64_t index);  // without its memory
  LayerMemory (*block_memory)(const ModelOptions& options);        // the same for all blocks
  LayerSpec (*head)(const ModelOptions& options);
};

// Puts them together: tokens in, one target of `vocabulary` classes for each. An empty activation
// becomes `default_activation`. Requires: sizes were checked (CheckModelSizes).
ModelSpec AssembleTokenModel(const ModelOptions& options, Objective objective,
                             absl::string_view default_activation, const TokenModelLayers& layers);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODELS_LAYERS_H_
