#include "planner/memory/stage_passes.h"

#include <algorithm>
#include <utility>

#include "planner/memory/layer_uses.h"
#include "planner/memory/published_formula.h"

namespace siphon {
namespace {

constexpr int64_t kFloatBytes = 4;

// One layer in the place where it stands. `held` is what it adds to the stash.
struct LayerCost {
  LayerUse use;
  Bytes input;
  Bytes output;
  Bytes held;
  Bytes kept;
  bool saves_input = false;  // by itself, or the layer before saved it as its output
  bool saves_output = false;
  Bytes forward_workspace;
  Bytes backward_workspace;
  Bytes input_backward_workspace;
  Bytes parameter_gradients;
};

Bytes OutputBytes(const MemoryInputs& inputs, int layer) {
  const std::vector<LayerSpec>& layers = inputs.model->layers;
  if (layer < 0 || layer + 1 >= static_cast<int>(layers.size())) return Bytes();
  if (inputs.profile != nullptr) return inputs.profile->layers[layer].boundary;
  Bytes bytes;
  for (const TensorSpec& output : layers[layer].outputs) {
    bytes += SavedSampleBytes({.sample = output}, inputs.precision) * inputs.microbatch;
  }
  return bytes;
}

Bytes GradientBytes(const MemoryInputs& inputs, const LayerSpec& layer) {
  int64_t elements = 0;
  for (const ParameterSpec& parameter : layer.parameters) {
    elements += ElementCount({DType::kFloat32, parameter.shape});
  }
  return Bytes(ComputedBytes(inputs.precision) * elements);
}

Bytes Scaled(const MemoryInputs& inputs, const std::vector<WorkspaceMoment>& moments) {
  const Bytes wide = MostWorkspace(moments, inputs.microbatch);
  return Bytes(wide.value / kFloatBytes * ComputedBytes(inputs.precision));
}

void UseMeasured(const LayerProfile& profile, LayerCost& cost) {
  cost.use.source = MemorySource::kMeasured;
  cost.use.saved = profile.saved;
  cost.held = SavedBytes(profile);
  cost.kept = profile.kept_for_weights;
  cost.forward_workspace = profile.forward_workspace;
  cost.backward_workspace = profile.backward_workspace;
  cost.input_backward_workspace = profile.backward_workspace;
  // The list may have the input and the output in it, under names that nobody promises.
  cost.saves_input = false;
}

// `input_is_saved`: by the layer before, in the same stage.
void UseSavedTensors(const MemoryInputs& inputs, const LayerMemory& memory, bool input_is_saved,
                     LayerCost& cost) {
  cost.use.source = MemorySource::kSavedTensors;
  for (const SavedTensorSpec& tensor : memory.saved) {
    const Bytes bytes = SavedSampleBytes(tensor, inputs.precision) * inputs.microbatch;
    if (tensor.kept_for_weights) cost.kept += bytes;
    cost.saves_input |= tensor.storage == SavedStorage::kInput;
    cost.saves_output |= tensor.storage == SavedStorage::kOutput;
    if (tensor.storage == SavedStorage::kInput && input_is_saved) continue;
    cost.held += bytes;
    cost.use.saved.push_back({tensor.name, bytes});
  }
  for (const SavedTensorSpec& tensor : memory.queued) {
    cost.kept += SavedSampleBytes(tensor, inputs.precision) * inputs.microbatch;
  }
  cost.forward_workspace = Scaled(inputs, memory.forward);
  cost.backward_workspace = Scaled(inputs, memory.backward);
  cost.input_backward_workspace =
      Scaled(inputs, memory.input_backward.empty() ? memory.backward : memory.input_backward);
}

LayerCost CostOf(const MemoryInputs& inputs, int index, bool input_is_saved) {
  const LayerSpec& layer = inputs.model->layers[index];
  LayerCost cost;
  cost.use.name = layer.name;
  cost.input = OutputBytes(inputs, index - 1);
  cost.output = OutputBytes(inputs, index);
  cost.parameter_gradients = GradientBytes(inputs, layer);
  if (inputs.profile != nullptr) {
    UseMeasured(inputs.profile->layers[index], cost);
  } else if (layer.memory.has_value()) {
    UseSavedTensors(inputs, *layer.memory, input_is_saved, cost);
  } else if (auto published =
                 PublishedActivations(*inputs.model, layer, inputs.microbatch, inputs.precision)) {
    cost.use.source = MemorySource::kPublishedFormula;
    cost.use.saved = *std::move(published);
    for (const SavedTensor& tensor : cost.use.saved) cost.held += tensor.bytes;
    cost.kept = cost.held;
  }
  if (cost.use.source == MemorySource::kUnknown ||
      cost.use.source == MemorySource::kPublishedFormula) {
    cost.backward_workspace = cost.input + cost.parameter_gradients;
    cost.input_backward_workspace = cost.backward_workspace;
  }
  cost.saves_input |= input_is_saved;
  return cost;
}

void Raise(PassMoment& fullest, const PassMoment& moment) {
  if (moment.total() > fullest.total()) fullest = moment;
}

StagePasses PassesOf(const MemoryInputs& inputs, const StageRange& range) {
  std::vector<LayerCost> costs;
  for (int layer = range.begin; layer < range.end; ++layer) {
    costs.push_back(CostOf(inputs, layer, !costs.empty() && costs.back().saves_output));
  }
  StagePasses passes;
  passes.input = costs.front().input;
  passes.output = costs.back().output;
  passes.output_alone = costs.back().saves_output ? Bytes() : passes.output;
  Bytes kept_behind;  // of layers whose backward was
  for (const LayerCost& cost : costs) passes.stash += cost.held;
  Bytes below = passes.stash;
  for (auto cost = costs.rbegin(); cost != costs.rend(); ++cost) {
    const bool is_last = cost == costs.rbegin();
    const bool is_first = cost + 1 == costs.rend();
    PassMoment forward{.activations = below, .workspace = cost->forward_workspace};
    if (!cost->saves_input) (is_first ? forward.boundary : forward.workspace) += cost->input;
    if (!cost->saves_output) (is_last ? forward.boundary : forward.workspace) += cost->output;
    Raise(passes.forward, forward);

    PassMoment backward{.activations = below};
    (is_last ? backward.boundary : backward.workspace) += cost->output;
    PassMoment input_backward = backward;
    backward.workspace += cost->backward_workspace;
    Raise(passes.backward, backward);
    input_backward.activations += kept_behind;
    input_backward.workspace += cost->input_backward_workspace;
    Raise(passes.input_backward, input_backward);

    kept_behind += cost->kept;
    below -= cost->held;
  }
  passes.kept = kept_behind;
  for (LayerCost& cost : costs) {
    Raise(passes.weight_backward,
          {.activations = passes.kept, .workspace = cost.parameter_gradients});
    passes.layers.push_back(std::move(cost.use));
  }
  return passes;
}

}  // namespace

std::vector<StagePasses> PassesOfStages(const MemoryInputs& inputs) {
  std::vector<StagePasses> passes;
  for (const StageRange& range : inputs.partition->stages) {
    passes.push_back(PassesOf(inputs, range));
  }
  return passes;
}

}  // namespace siphon
