#include "planner/model_spec.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/models/models.h"

namespace siphon {
namespace {

struct ModelRow {
  absl::string_view kind;
  absl::StatusOr<ModelSpec> (*build)(const ModelOptions& options);
};

constexpr ModelRow kModels[] = {
#define SIPHON_MODEL(kind, builder) {kind, builder},
#include "planner/models/models.def"
#undef SIPHON_MODEL
};

constexpr ModelRow kPlannedModels[] = {
#define SIPHON_MODEL(kind, builder)
#define SIPHON_PLANNED_MODEL(kind, builder) {kind, builder},
#include "planner/models/models.def"
#undef SIPHON_PLANNED_MODEL
#undef SIPHON_MODEL
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status BadLayer(const LayerSpec& layer, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("layer '", layer.name, "' ", problem));
}

struct FirstUse {
  const LayerSpec* layer;
  const std::vector<int64_t>* shape;
};

absl::Status CheckParameters(const LayerSpec& layer,
                             absl::flat_hash_map<absl::string_view, FirstUse>& first_uses) {
  absl::flat_hash_set<absl::string_view> in_this_layer;
  for (const ParameterSpec& parameter : layer.parameters) {
    if (parameter.name.empty()) return BadLayer(layer, "has a parameter without a name");
    if (parameter.name == "__metadata__") {
      return BadLayer(layer,
                      "has a parameter named __metadata__, which files of weights have for "
                      "themselves");
    }
    if (!std::isfinite(parameter.standard_deviation) || parameter.standard_deviation < 0) {
      return BadLayer(
          layer, absl::StrCat("has parameter '", parameter.name, "' with a standard deviation of ",
                              parameter.standard_deviation, "; it must be 0 or more"));
    }
    for (const int64_t extent : parameter.shape) {
      if (extent <= 0) {
        return BadLayer(
            layer, absl::StrCat("has parameter '", parameter.name, "' of shape ",
                                ShapeText(parameter.shape), "; every extent must be positive"));
      }
    }
    if (!in_this_layer.insert(parameter.name).second) {
      return BadLayer(layer, absl::StrCat("has parameter '", parameter.name, "' twice"));
    }
    const auto [first, is_new] =
        first_uses.insert({parameter.name, FirstUse{&layer, &parameter.shape}});
    if (!is_new && *first->second.shape != parameter.shape) {
      return BadLayer(layer, absl::StrCat("uses parameter '", parameter.name, "' with shape ",
                                          ShapeText(parameter.shape), ", but layer '",
                                          first->second.layer->name, "' declares ",
                                          ShapeText(*first->second.shape)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> BuildModelSpec(const ModelOptions& options) {
  for (const ModelRow& row : kModels) {
    if (row.kind == options.kind) return row.build(options);
  }
  for (const ModelRow& row : kPlannedModels) {
    if (row.kind == options.kind) return row.build(options);
  }
  std::vector<std::string> known = KnownModelKinds();
  for (const std::string& kind : KnownPlannedModelKinds()) {
    known.push_back(absl::StrCat(kind, " (for planning only)"));
  }
  return absl::NotFoundError(
      absl::StrCat("unknown model kind '", options.kind, "'; known: ", absl::StrJoin(known, ", ")));
}

std::vector<std::string> KnownModelKinds() {
  std::vector<std::string> kinds;
  for (const ModelRow& row : kModels) kinds.emplace_back(row.kind);
  return kinds;
}

std::vector<std::string> KnownPlannedModelKinds() {
  std::vector<std::string> kinds;
  for (const ModelRow& row : kPlannedModels) kinds.emplace_back(row.kind);
  return kinds;
}

std::vector<Parameter> CanonicalParameters(const ModelSpec& model) {
  std::vector<Parameter> parameters;
  absl::flat_hash_map<absl::string_view, size_t> place_of;
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    const std::vector<ParameterSpec>& specs = model.layers[layer].parameters;
    for (size_t index = 0; index < specs.size(); ++index) {
      const auto [place, is_new] = place_of.insert({specs[index].name, parameters.size()});
      if (is_new) parameters.push_back({specs[index].name, specs[index].shape, {}});
      parameters[place->second].uses.push_back({static_cast<int>(layer), static_cast<int>(index)});
    }
  }
  return parameters;
}

int64_t ParameterCount(const ModelSpec& model) {
  int64_t count = 0;
  for (const Parameter& parameter : CanonicalParameters(model)) {
    count += ElementCount({DType::kFloat32, parameter.shape});
  }
  return count;
}

absl::Status ValidateModelSpec(const ModelSpec& model) {
  if (model.layers.empty()) return absl::InvalidArgumentError("the model has no layers");
  absl::flat_hash_set<absl::string_view> names;
  absl::flat_hash_map<absl::string_view, FirstUse> first_uses;
  for (const LayerSpec& layer : model.layers) {
    if (layer.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", &layer - model.layers.data(), " has no name"));
    }
    if (!names.insert(layer.name).second) {
      return BadLayer(layer, "stands twice in the model; names must be unique");
    }
    const absl::Status parameters = CheckParameters(layer, first_uses);
    if (!parameters.ok()) return parameters;
    if (layer.outputs.empty() && &layer != &model.layers.back()) {
      return BadLayer(layer, "declares no outputs, but is not the last layer");
    }
  }
  return absl::OkStatus();
}

}  // namespace siphon
