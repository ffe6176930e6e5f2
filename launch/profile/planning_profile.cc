#include "launch/profile/planning_profile.h"

#include <algorithm>
#include <cstddef>

#include "planner/memory/held_bytes.h"
#include "planner/memory/layer_uses.h"
#include "planner/memory/stage_passes.h"
#include "planner/stage_cost.h"

namespace siphon {
namespace {

void SetActivations(const LayerMemory& memory, const MemoryInputs& inputs, LayerProfile& layer) {
  layer.saved = SavedOf(memory, inputs.microbatch, inputs.precision);
  layer.saved_input = Bytes(0);
  layer.saved_output = Bytes(0);
  layer.kept_for_weights = Bytes(0);
  for (size_t index = 0; index < memory.saved.size(); ++index) {
    const SavedTensorSpec& tensor = memory.saved[index];
    const Bytes bytes = layer.saved[index].bytes;
    if (tensor.storage == SavedStorage::kInput) layer.saved_input += bytes;
    if (tensor.storage == SavedStorage::kOutput) layer.saved_output += bytes;
    if (tensor.kept_for_weights) layer.kept_for_weights += bytes;
  }
  for (const SavedTensorSpec& tensor : memory.queued) {
    layer.kept_for_weights += SavedSampleBytes(tensor, inputs.precision) * inputs.microbatch;
  }
}

// Of a layer without a description what a forward takes beside all that it saves, with the rest of
// that, which was not dropped.
void SetRemakeWorkspace(const MemoryInputs& inputs, int index, LayerProfile& layer) {
  const std::optional<LayerMemory>& memory = inputs.model->layers[index].memory;
  const bool known = memory.has_value() && memory->saved.size() == layer.saved.size();
  Bytes rest = SavedBytes(layer);
  for (size_t tensor = 0; tensor < layer.saved.size(); ++tensor) {
    rest -= layer.saved[tensor].bytes;
    layer.saved[tensor].remake_workspace =
        known ? RemakeWorkspace(inputs, index, static_cast<int>(tensor) + 1)
              : layer.forward_workspace + rest;
  }
}

// [layer]: of the parameters that it is the first of its stage to use.
std::vector<HeldBytes> FirstUses(const MemoryInputs& inputs) {
  std::vector<HeldBytes> layers(inputs.model->layers.size());
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    const HeldBytes held = HeldBytesOf(parameter.shape, inputs);
    int last_stage = -1;
    for (const ParameterUse& use : parameter.uses) {
      const int stage = StageOfLayer(*inputs.partition, use.layer).value;
      if (stage != last_stage) layers[use.layer] = layers[use.layer] + held;
      last_stage = stage;
    }
  }
  return layers;
}

// The stage's first layer with parameters has what is left of its gradients and optimizer state:
// other uses of its parameters, and the number of updates.
void SetStage(const PlanStage& stage, const std::vector<HeldBytes>& held,
              std::vector<LayerProfile>& layers) {
  int owner = stage.layers.begin;
  Bytes gradients = stage.cost.gradients;
  Bytes optimizer_state = stage.cost.optimizer_state;
  for (int index = stage.layers.end - 1; index >= stage.layers.begin; --index) {
    LayerProfile& layer = layers[index];
    layer.parameters = held[index].weights;
    layer.gradients = held[index].gradients;
    layer.optimizer_state = held[index].optimizer;
    layer.forward_workspace = Bytes(0);
    layer.backward_workspace = Bytes(0);
    layer.input_backward_workspace = Bytes(0);
    layer.weight_backward_workspace = Bytes(0);
    gradients -= layer.gradients;
    optimizer_state -= layer.optimizer_state;
    if (layer.parameters > Bytes(0)) owner = index;
  }
  layers[owner].gradients += gradients;
  layers[owner].optimizer_state += optimizer_state;
  layers[stage.layers.begin].forward_workspace = stage.cost.forward_workspace;
  // Where a backward comes first: its I has kept nothing yet.
  LayerProfile& last = layers[stage.layers.end - 1];
  last.backward_workspace = stage.cost.backward_workspace;
  last.input_backward_workspace = stage.cost.input_backward_workspace;
  last.weight_backward_workspace = stage.cost.weight_backward_workspace;
}

}  // namespace

ModelProfile PlanningProfile(ModelProfile times, const MemoryInputs& inputs,
                             const std::vector<PlanStage>& stages) {
  if (inputs.profile == nullptr) {
    for (size_t index = 0; index < times.layers.size(); ++index) {
      const LayerSpec& layer = inputs.model->layers[index];
      if (layer.memory.has_value()) SetActivations(*layer.memory, inputs, times.layers[index]);
    }
  }
  for (size_t index = 0; index < times.layers.size(); ++index) {
    SetRemakeWorkspace(inputs, static_cast<int>(index), times.layers[index]);
  }
  const std::vector<HeldBytes> held = FirstUses(inputs);
  for (const PlanStage& stage : stages) SetStage(stage, held, times.layers);
  return times;
}

}  // namespace siphon
