#include "planner/memory/stage_passes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/memory/layer_uses.h"
#include "planner/memory/matrix_scratch.h"
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
  Bytes kept_of_before;  // part of `kept` that the layer before holds too until its own backward
  Bytes input_alone;     // what the input takes beside what it or the layer before saved
  Bytes output_alone;    // what the output takes beside what it saved
  Bytes forward_workspace;
  Bytes backward_workspace;
  Bytes input_backward_workspace;
  Bytes parameter_gradients;
  Bytes weight_backward_workspace;
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
  return Bytes(ComputedBytes(inputs.precision) * UsedElements(layer));
}

Bytes Scaled(const MemoryInputs& inputs, const std::vector<WorkspaceMoment>& moments) {
  const Bytes wide = MostWorkspace(moments, inputs.microbatch);
  return Bytes(wide.value / kFloatBytes * ComputedBytes(inputs.precision));
}

// Logits of 16 bits are cast for the loss: of both passes, what takes float32 beyond half of what
// the float32 run takes (its own logits there; gradient and scattered targets here).
Bytes WideLogits(const MemoryInputs& inputs, int layer) {
  const bool is_last = layer + 1 == static_cast<int>(inputs.model->layers.size());
  if (!is_last || inputs.precision == Precision::kFloat32) return Bytes();
  const int64_t logits = ElementCount(inputs.model->target) * inputs.model->classes;
  return Bytes(kFloatBytes * logits * inputs.microbatch);
}

// `saved_before`: of the layer's input, by the layer before in the same stage.
void UseMeasured(const LayerProfile& profile, Bytes saved_before, LayerCost& cost) {
  cost.use.source = MemorySource::kMeasured;
  cost.use.saved = profile.saved;
  cost.kept = profile.kept_for_weights;
  cost.forward_workspace = profile.forward_workspace;
  cost.backward_workspace = profile.backward_workspace;
  // A layer that keeps something for W was run in halves; without an input gradient I needs
  // nothing.
  const bool split =
      profile.input_backward_workspace > Bytes() || profile.kept_for_weights > Bytes();
  cost.input_backward_workspace =
      split ? profile.input_backward_workspace : profile.backward_workspace;
  if (profile.weight_backward_workspace > Bytes()) {
    cost.weight_backward_workspace = profile.weight_backward_workspace;
  }
  // What both layers saved of the boundary between them is there once.
  const Bytes shared = std::min(profile.saved_input, saved_before);
  cost.held = SavedBytes(profile) - shared;
  cost.kept_of_before = std::min(shared, profile.kept_for_weights);
  cost.input_alone = cost.input - std::max(profile.saved_input, saved_before);
  cost.output_alone = cost.output - profile.saved_output;
}

void UseSavedTensors(const MemoryInputs& inputs, const LayerMemory& memory, Bytes saved_before,
                     LayerCost& cost) {
  cost.use.source = MemorySource::kSavedTensors;
  const bool input_is_saved = saved_before > Bytes();
  if (input_is_saved) cost.input_alone = Bytes();
  for (const SavedTensorSpec& tensor : memory.saved) {
    const Bytes bytes = SavedMicrobatchBytes(tensor, inputs.microbatch, inputs.precision);
    if (tensor.kept_for_weights) cost.kept += bytes;
    if (tensor.storage == SavedStorage::kInput) cost.input_alone = Bytes();
    if (tensor.storage == SavedStorage::kOutput) cost.output_alone = Bytes();
    if (tensor.storage == SavedStorage::kInput && input_is_saved) {
      if (tensor.kept_for_weights) cost.kept_of_before += bytes;
      continue;
    }
    cost.held += bytes;
    cost.use.saved.push_back({tensor.name, bytes});
  }
  for (const SavedTensorSpec& tensor : memory.queued) {
    cost.kept += SavedSampleBytes(tensor, inputs.precision) * inputs.microbatch;
  }
}

LayerCost CostOf(const MemoryInputs& inputs, int index, Bytes saved_before) {
  const LayerSpec& layer = inputs.model->layers[index];
  LayerCost cost;
  cost.use.name = layer.name;
  cost.input = OutputBytes(inputs, index - 1);
  cost.output = OutputBytes(inputs, index);
  cost.input_alone = cost.input;
  cost.output_alone = cost.output;
  cost.parameter_gradients = GradientBytes(inputs, layer);
  cost.weight_backward_workspace = cost.parameter_gradients;
  if (inputs.profile != nullptr) {
    UseMeasured(inputs.profile->layers[index], saved_before, cost);
  } else if (layer.memory.has_value()) {
    UseSavedTensors(inputs, *layer.memory, saved_before, cost);
    const LayerWorkspace workspace = WorkspaceOf(inputs, index);
    cost.forward_workspace = workspace.forward;
    cost.backward_workspace = workspace.backward;
    cost.input_backward_workspace = workspace.input_backward;
    cost.weight_backward_workspace = workspace.weight_backward;
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
  return cost;
}

void Raise(PassMoment& fullest, const PassMoment& moment) {
  if (moment.total() > fullest.total()) fullest = moment;
}

StagePasses PassesOf(const MemoryInputs& inputs, const StageRange& range) {
  std::vector<LayerCost> costs;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const Bytes saved_before =
        costs.empty() ? Bytes() : costs.back().output - costs.back().output_alone;
    costs.push_back(CostOf(inputs, layer, saved_before));
  }
  StagePasses passes;
  passes.input = costs.front().input;
  passes.output = costs.back().output;
  passes.output_alone = costs.back().output_alone;
  Bytes kept_behind;    // of layers whose backward was
  Bytes kept_here_too;  // of that, what is in `below` as well
  for (const LayerCost& cost : costs) passes.stash += cost.held;
  Bytes below = passes.stash;
  for (auto cost = costs.rbegin(); cost != costs.rend(); ++cost) {
    const bool is_last = cost == costs.rbegin();
    const bool is_first = cost + 1 == costs.rend();
    PassMoment forward{.activations = below, .workspace = cost->forward_workspace};
    (is_first ? forward.boundary : forward.workspace) += cost->input_alone;
    (is_last ? forward.boundary : forward.workspace) += cost->output_alone;
    Raise(passes.forward, forward);

    PassMoment backward{.activations = below};
    (is_last ? backward.boundary : backward.workspace) += cost->output;
    PassMoment input_backward = backward;
    backward.workspace += cost->backward_workspace;
    Raise(passes.backward, backward);
    input_backward.activations += kept_behind - kept_here_too;
    input_backward.workspace += cost->input_backward_workspace;
    Raise(passes.input_backward, input_backward);

    kept_behind += cost->kept;
    kept_here_too = cost->kept_of_before;
    below -= cost->held;
  }
  passes.kept = kept_behind;
  Bytes kept = passes.kept;  // each layer's goes with its turn
  for (auto cost = costs.rbegin(); cost != costs.rend(); ++cost) {
    Raise(passes.weight_backward,
          {.activations = kept, .workspace = cost->weight_backward_workspace});
    kept -= cost->kept;
  }
  for (LayerCost& cost : costs) passes.layers.push_back(std::move(cost.use));
  return passes;
}

// Of the layer's largest products with its parameters.
LayerWorkspace ScratchOf(const MemoryInputs& inputs, int index) {
  const LayerSpec& layer = inputs.model->layers[index];
  LayerWorkspace scratch;
  if (inputs.precision == Precision::kFloat32) return scratch;
  // Tables, whose rows are looked up, are in no product: their layers save nothing for weights.
  const std::vector<SavedTensorSpec>& saved = layer.memory->saved;
  if (std::none_of(saved.begin(), saved.end(),
                   [](const SavedTensorSpec& tensor) { return tensor.kept_for_weights; })) {
    return scratch;
  }
  int64_t rows = ElementCount(inputs.model->target);
  if (!layer.outputs.empty() && !layer.outputs.front().shape.empty()) {
    rows = ElementCount(layer.outputs.front()) / layer.outputs.front().shape.back();
  }
  rows *= inputs.microbatch;
  const auto raise = [&](Bytes& most, const MatrixProduct& product) {
    most = std::max(most, MatrixScratch(product, inputs.precision, inputs.matrix_kernels));
  };
  for (const ParameterSpec& parameter : layer.parameters) {
    if (parameter.shape.size() != 2) continue;
    // [in, out] or [out, in]: both are looked at.
    for (const auto& [in, out] : {std::pair(parameter.shape[0], parameter.shape[1]),
                                  std::pair(parameter.shape[1], parameter.shape[0])}) {
      raise(scratch.forward, {rows, in, out});
      raise(scratch.input_backward, {rows, out, in});
      raise(scratch.weight_backward, {in, rows, out, /*turned=*/true});
    }
  }
  scratch.backward = std::max(scratch.input_backward, scratch.weight_backward);
  return scratch;
}

}  // namespace

LayerWorkspace WorkspaceOf(const MemoryInputs& inputs, int layer) {
  const std::optional<LayerMemory>& memory = inputs.model->layers[layer].memory;
  if (!memory.has_value()) return {};
  const Bytes wide = WideLogits(inputs, layer);
  const bool split = !memory->input_backward.empty() || !memory->queued.empty();
  const LayerWorkspace scratch = ScratchOf(inputs, layer);
  return {.forward = Scaled(inputs, memory->forward) + wide + scratch.forward,
          .backward = Scaled(inputs, memory->backward) + wide + scratch.backward,
          .input_backward = Scaled(inputs, split ? memory->input_backward : memory->backward) +
                            wide + scratch.input_backward,
          .weight_backward =
              GradientBytes(inputs, inputs.model->layers[layer]) + scratch.weight_backward};
}

Bytes RemakeWorkspace(const MemoryInputs& inputs, int layer, int first_tensors) {
  const std::vector<SavedTensorSpec>& saved = inputs.model->layers[layer].memory->saved;
  std::vector<WorkspaceMoment> moments;
  WorkspaceMoment own;
  for (int index = 0; index < first_tensors; ++index) {
    const SavedTensorSpec& tensor = saved[index];
    moments.insert(moments.end(), tensor.forward_until.begin(), tensor.forward_until.end());
    if (tensor.storage == SavedStorage::kInput) continue;
    (tensor.sample.shape.empty() ? own.fixed : own.per_sample) += SizeOf(tensor.sample);
  }
  for (WorkspaceMoment& moment : moments) {
    moment.per_sample -= own.per_sample;
    moment.fixed -= own.fixed;
  }
  return Scaled(inputs, moments) + WideLogits(inputs, layer) + ScratchOf(inputs, layer).forward;
}

std::vector<StagePasses> PassesOfStages(const MemoryInputs& inputs) {
  std::vector<StagePasses> passes;
  for (const StageRange& range : inputs.partition->stages) {
    passes.push_back(PassesOf(inputs, range));
  }
  return passes;
}

}  // namespace siphon
