#include "pipeline/torch/layers.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/torch/keyed_random.h"
#include "planner/memory/held_bytes.h"
#include "planner/status.h"

namespace siphon {

#define SIPHON_LAYER_KIND(kind, builder) LayerForward builder(const ModelOptions& options);
#include "pipeline/torch/kinds/layer_kinds.def"
#undef SIPHON_LAYER_KIND

namespace {

struct LayerKind {
  absl::string_view name;
  LayerForward (*build)(const ModelOptions& options);
};

constexpr LayerKind kLayerKinds[] = {
#define SIPHON_LAYER_KIND(kind, builder) {kind, builder},
#include "pipeline/torch/kinds/layer_kinds.def"
#undef SIPHON_LAYER_KIND
};

absl::StatusOr<LayerForward> BuildLayer(const LayerSpec& layer, const ModelOptions& options) {
  std::vector<absl::string_view> known;
  for (const LayerKind& kind : kLayerKinds) {
    if (kind.name == layer.kind) return kind.build(options);
    known.push_back(kind.name);
  }
  return absl::NotFoundError(absl::StrCat("layer ", layer.name, ": unknown kind '", layer.kind,
                                          "'; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace

LayerContext::LayerContext(const std::vector<at::Tensor>* parameters, Position position,
                           bool training, at::ScalarType computed, at::Device device)
    : parameters_(parameters),
      position_(position),
      training_(training),
      computed_(computed),
      device_(device) {}

const at::Tensor& LayerContext::ParameterAsHeld(int index) const {
  TORCH_CHECK_INDEX(index >= 0 && static_cast<size_t>(index) < parameters_->size(),
                    "the layer asks for its parameter ", index, ", and has ", parameters_->size());
  return (*parameters_)[static_cast<size_t>(index)];
}

const at::Tensor& LayerContext::Parameter(int index) {
  const at::Tensor& held = ParameterAsHeld(index);
  if (held.scalar_type() == computed_) return held;
  if (cast_.empty()) cast_.resize(parameters_->size());
  at::Tensor& cast = cast_[static_cast<size_t>(index)];
  if (!cast.defined()) cast = held.to(computed_);
  return cast;
}

at::Tensor LayerContext::DropoutMask(at::IntArrayRef shape, double probability) {
  TORCH_CHECK(training_, "the layer draws a dropout mask outside of training");
  TORCH_CHECK_VALUE(probability > 0 && probability < 1,
                    "the layer draws a dropout mask with a probability of ", probability,
                    ", which is not within (0, 1)");
  return KeyedDropoutMask(position_.seed, position_.step, position_.microbatch, position_.layer,
                          draws_++, shape, probability, computed_, device_);
}

at::Tensor LayerContext::Dropout(const at::Tensor& x, double probability) {
  if (!training_ || probability == 0) return x;
  return x * DropoutMask(x.sizes(), probability);
}

absl::StatusOr<Model> BuildModel(const ModelOptions& options) {
  Model model;
  SIPHON_ASSIGN_OR_RETURN(model.spec, BuildModelSpec(options));
  for (const LayerSpec& layer : model.spec.layers) {
    SIPHON_ASSIGN_OR_RETURN(LayerForward forward, BuildLayer(layer, model.spec.options));
    model.forward.push_back(std::move(forward));
  }
  return model;
}

void SetPrecision(Precision precision, HeldVectors vectors, Model& model) {
  model.spec = InPrecision(std::move(model.spec), precision);
  model.computed = ComputedType(precision);
  model.vectors = vectors;
}

absl::Status ValidateModel(const Model& model) {
  SIPHON_RETURN_IF_ERROR(ValidateModelSpec(model.spec));
  if (model.forward.size() != model.spec.layers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", model.spec.layers.size(),
                                                   " layers and ", model.forward.size(),
                                                   " forward functions; it needs one for each"));
  }
  for (size_t layer = 0; layer < model.forward.size(); ++layer) {
    if (model.forward[layer]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", model.spec.layers[layer].name, " has an empty forward function"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
