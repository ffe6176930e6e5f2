#ifndef SIPHON_PLANNER_MODEL_SPEC_H_
#define SIPHON_PLANNER_MODEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/ids.h"
#include "planner/layer_memory.h"
#include "planner/tensor_spec.h"

namespace siphon {

enum class Initializer { kZeros, kOnes, kNormal };

struct ParameterSpec {
  std::string name;  // as on disk, e.g. "transformer.h.0.attn.c_attn.weight"
  std::vector<int64_t> shape;
  Initializer initializer = Initializer::kNormal;
  double standard_deviation = 0.02;  // of kNormal
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// One layer: the unit in which a model is cut into stages.
struct LayerSpec {
  std::string name;  // e.g. "transformer.h.0"; unique in the model
  std::string kind;  // e.g. "gpt_block": names the LibTorch builder of built-in layers
  // In canonical order. A name that an earlier layer has already is the same (tied) parameter,
  // owned by that layer.
  std::vector<ParameterSpec> parameters;
  std::vector<TensorSpec>
      outputs;  // per sample (no batch dimension); empty for the last layer: it ends in the loss
  int64_t forward_flops = 0;  // one sample, multiply and add counted apart
  // What its passes keep and take; empty when not known, as in layers that users write.
  std::optional<LayerMemory> memory;
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// How targets are made of the data, and what the loss means.
enum class Objective {
  kNextToken,       // inputs x[0, s), targets x[1, s + 1)
  kMaskedToken,     // some positions masked; targets only there
  kClassification,  // one label a sample
};

// Built-in models' options, as in the job file. Sizes count elements.
struct ModelOptions {
  std::string kind = "gpt";
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t vocabulary = 256;
  int64_t sequence_length = 64;
  double dropout = 0.0;
  bool tie_embeddings = true;
  bool flash_attention = true;
  std::string activation;  // "gelu_new", "gelu", "relu"; empty: the kind's own
  friend bool operator==(const ModelOptions&, const ModelOptions&) = default;
};

struct ModelSpec {
  ModelOptions options;
  Objective objective = Objective::kNextToken;
  TensorSpec input;     // one sample, e.g. I64[sequence_length]
  TensorSpec target;    // one sample; always I64, -100 means "no target here"
  int64_t classes = 0;  // number of different targets
  std::vector<LayerSpec> layers;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// Targets with this value count neither in the loss nor in its denominator.
inline constexpr int64_t kIgnoredTarget = -100;

// Builds a built-in model's layers from the table planner/models/models.def.
// Errors: NotFound for an unknown kind (known ones listed); InvalidArgument for sizes that do not
// work together (hidden not divisible by heads, non-positive sizes, a product beyond 63 bits,
// unknown activation), naming the key.
absl::StatusOr<ModelSpec> BuildModelSpec(const ModelOptions& options);
std::vector<std::string> KnownModelKinds();  // those that train
// Those whose layers are known without a way to run them (vgg16): for planning.
std::vector<std::string> KnownPlannedModelKinds();

// A use of a parameter in a layer.
struct ParameterUse {
  int layer = 0;
  int index = 0;  // in LayerSpec::parameters
  friend bool operator==(const ParameterUse&, const ParameterUse&) = default;
};

// A parameter with all its uses in layer order; the first use owns it (it is stored, counted and
// decayed once).
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<ParameterUse> uses;
};

// All parameters in canonical order: layer by layer, as in an unsplit model, tied ones at their
// first use.
std::vector<Parameter> CanonicalParameters(const ModelSpec& model);
int64_t ParameterCount(const ModelSpec& model);

// Checks what every model must satisfy, also one that a user wrote: at least one layer, unique
// layer names, a tied parameter has one shape, outputs declared for all layers but the last.
// Errors: InvalidArgument naming the layer.
absl::Status ValidateModelSpec(const ModelSpec& model);

}  // namespace siphon

#endif  // SIPHON_PLANNER_MODEL_SPEC_H_
