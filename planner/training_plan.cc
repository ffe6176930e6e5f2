#include "planner/training_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Of all parameters that the stage holds; one that several of its layers use counts once.
Bytes ParametersHeld(const ModelSpec& model, const StageRange& range) {
  absl::flat_hash_set<absl::string_view> seen;
  Bytes held;
  for (int layer = range.begin; layer < range.end; ++layer) {
    for (const ParameterSpec& parameter : model.layers[layer].parameters) {
      if (seen.insert(parameter.name).second) held += SizeOf({DType::kFloat32, parameter.shape});
    }
  }
  return held;
}

// Of what the layer gives to the next one, a microbatch of it.
Bytes BoundaryOf(const LayerSpec& layer, int64_t microbatch) {
  Bytes bytes;
  for (const TensorSpec& output : layer.outputs) bytes += SizeOf(output) * microbatch;
  return bytes;
}

std::string LayerNames(const ModelSpec& model, const StageRange& range) {
  const std::string& first = model.layers[range.begin].name;
  if (range.end - range.begin == 1) return NameForPlan(first);
  return NameForPlan(absl::StrCat(first, " .. ", model.layers[range.end - 1].name));
}

}  // namespace

std::vector<StageCost> UnitStageCosts(const TrainingPlan& plan, const ModelSpec& model) {
  std::vector<StageCost> costs;
  for (const StageRange& range : plan.partition.stages) {
    const bool is_first = range.begin == 0;
    const bool is_last = range.end == static_cast<int>(model.layers.size());
    StageCost cost{.forward = kUnitTime, .input_backward = kUnitTime, .weight_backward = kUnitTime};
    cost.parameters = ParametersHeld(model, range);
    cost.gradients = cost.parameters;
    if (!is_first) cost.input = BoundaryOf(model.layers[range.begin - 1], plan.microbatch);
    if (!is_last) cost.output = BoundaryOf(model.layers[range.end - 1], plan.microbatch);
    costs.push_back(cost);
  }
  return costs;
}

PlanText ToPlanText(const TrainingPlan& plan, const ModelSpec& model, std::vector<StageCost> costs,
                    absl::string_view source) {
  SIPHON_CHECK(costs.size() == plan.partition.stages.size(), "each stage has its costs");
  PlanText text{.model = NameForPlan(model.options.kind),
                .schedule = plan.schedule_name,
                .microbatch = plan.microbatch,
                .global_batch = plan.global_batch,
                .costs = NameForPlan(source),
                .memory = plan.memory,
                .training = plan.training,
                .evaluation = plan.evaluation};
  text.workers.resize(plan.training.programs.size());
  for (size_t stage = 0; stage < costs.size(); ++stage) {
    const StageRange& range = plan.partition.stages[stage];
    text.stages.push_back({.worker = plan.training.worker_of_stage[stage],
                           .layers = range,
                           .names = LayerNames(model, range),
                           .cost = costs[stage]});
  }
  for (const SharedParameter& shared : plan.shared_parameters) {
    text.shared_parameters.push_back({NameForPlan(shared.name), shared.stages});
  }
  return text;
}

std::string ToString(const TrainingPlan& plan, const ModelSpec& model) {
  return ToString(ToPlanText(plan, model, UnitStageCosts(plan, model), kUnitCosts));
}

}  // namespace siphon
