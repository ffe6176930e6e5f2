#include "pipeline/torch/microbatch_passes.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/torch/call_torch.h"
#include "pipeline/torch/graphs/saved_tensors.h"
#include "planner/status.h"

namespace siphon {

MicrobatchPasses::MicrobatchPasses(MicrobatchId microbatch, const StageLayers* layers,
                                   StageParameters* parameters)
    : microbatch_(microbatch),
      layers_(layers),
      parameters_(parameters),
      kept_({layers->begin(), layers->end()}) {}

std::string MicrobatchPasses::LayerPlace(int layer) const {
  return absl::StrCat("layer ", layers_->Spec(layer).name, ", microbatch ", microbatch_.value);
}

template <typename Fn>
absl::Status MicrobatchPasses::AtLayer(int layer, Fn&& fn) const {
  const absl::Status status = CallTorch("backward", std::forward<Fn>(fn));
  return status.ok() ? status : Annotate(status, LayerPlace(layer));
}

absl::Status MicrobatchPasses::Drop(const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(collected_.CheckNotCollected(tensors.layers));
  return kept_.Drop(tensors);
}

absl::Status MicrobatchPasses::Collect(const LayerTensors& tensors) {
  SIPHON_RETURN_IF_ERROR(kept_.CheckNotDropped(tensors.layers));
  return collected_.Add(tensors);
}

absl::StatusOr<std::vector<at::Tensor>> MicrobatchPasses::ForwardLayer(
    int layer, std::vector<at::Tensor> inputs) {
  absl::StatusOr<LayerPass> pass =
      layers_->Forward(layer, microbatch_, parameters_->OfLayer(layer), inputs);
  if (!pass.ok()) return Annotate(pass.status(), LayerPlace(layer));
  if (layers_->IsTraining()) {
    if (kept_.FindDropped(layer) != nullptr) {
      SIPHON_RETURN_IF_ERROR(AtLayer(layer, [&] { pass->ReleaseInputs(); }));
    } else {
      for (size_t input = 0; input < inputs.size(); ++input) {
        if (pass->graph.HoldsInput(input)) collected_.HeldByGraph(inputs[input]);
      }
    }
    kept_.Keep(layer, inputs, std::move(pass->graph));
  }
  return std::move(pass->outputs);
}

SavedTensorSink* MicrobatchPasses::SinkOf(int layer) {
  const std::vector<at::Tensor>& parameters = parameters_->OfLayer(layer);
  if (DroppedLayers* dropped = kept_.FindDropped(layer)) {
    RemadeTensors& saved = dropped->saved[layer - dropped->layers.begin];
    return saved.FirstPass(parameters, dropped->first);
  }
  return collected_.SinkOf(layer, parameters, layers_->device());
}

absl::Status MicrobatchPasses::CheckFirstTensors(int layer) {
  const DroppedLayers* const dropped = kept_.FindDropped(layer);
  const FirstTensors* const first = dropped != nullptr
                                        ? &dropped->saved[layer - dropped->layers.begin].first()
                                        : collected_.FirstOf(layer);
  if (first == nullptr) return absl::OkStatus();
  return Annotate(first->Check(), LayerPlace(layer));
}

absl::StatusOr<std::vector<at::Tensor>> MicrobatchPasses::Forward(
    std::vector<at::Tensor> activations, PassWatch* watch) {
  for (int layer = layers_->begin(); layer < layers_->end(); ++layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, watch, /*gradients=*/false));
    {
      std::optional<CollectSavedTensors> collect;
      if (SavedTensorSink* sink = SinkOf(layer)) collect.emplace(sink);
      SIPHON_ASSIGN_OR_RETURN(activations, ForwardLayer(layer, std::move(activations)));
    }
    SIPHON_RETURN_IF_ERROR(CheckFirstTensors(layer));
    for (const StageRange& done :
         collected_.Complete(layer, activations, layer + 1 == layers_->end())) {
      if (watch != nullptr) SIPHON_RETURN_IF_ERROR(watch->Saved(microbatch_, done));
    }
    SIPHON_RETURN_IF_ERROR(Leave(layer, watch));
  }
  return activations;
}

absl::Status MicrobatchPasses::Recompute(StageRange layers) {
  std::optional<DroppedLayers> dropped = kept_.TakeDropped(layers);
  if (!dropped.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat("layers [", layers.begin, ", ", layers.end,
                                                      ") of microbatch ", microbatch_.value,
                                                      " were not dropped"));
  }
  std::vector<at::Tensor> activations = std::move(dropped->input);
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    const bool is_last = layer + 1 == layers.end;  // its output is there already
    RemadeTensors& saved = dropped->saved[layer - layers.begin];
    if (is_last && saved.IsComplete()) break;
    SIPHON_RETURN_IF_ERROR(Annotate(parameters_->CheckParameters(layer), LayerPlace(layer)));
    SIPHON_ASSIGN_OR_RETURN(activations, ForwardAgain(layer, std::move(activations), saved,
                                                      is_last ? RemadeTensors::Extent::kLastSaved
                                                              : RemadeTensors::Extent::kWhole));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> MicrobatchPasses::ForwardAgain(
    int layer, std::vector<at::Tensor> inputs, RemadeTensors& saved, RemadeTensors::Extent extent) {
  const CollectSavedTensors collect(saved.SecondPass(extent));
  absl::StatusOr<LayerPass> pass =
      layers_->Forward(layer, microbatch_, parameters_->OfLayer(layer), inputs);
  const absl::Status found = saved.CheckSecondPass(pass.status());
  if (!found.ok()) return Annotate(found, LayerPlace(layer));
  if (extent == RemadeTensors::Extent::kLastSaved) return std::vector<at::Tensor>();
  return std::move(pass->outputs);
}

absl::Status MicrobatchPasses::Enter(int layer, PassWatch* watch, bool gradients) const {
  if (watch != nullptr) SIPHON_RETURN_IF_ERROR(watch->Enter(layer));
  SIPHON_RETURN_IF_ERROR(Annotate(parameters_->CheckParameters(layer), LayerPlace(layer)));
  if (!gradients) return absl::OkStatus();
  return Annotate(parameters_->CheckGradients(layer), LayerPlace(layer));
}

absl::Status MicrobatchPasses::Leave(int layer, PassWatch* watch) {
  return watch == nullptr ? absl::OkStatus() : watch->Leave(layer);
}

absl::Status MicrobatchPasses::Provide(int layer, PassWatch* watch) {
  if (const StageRange* collected = collected_.EndingAt(layer);
      collected != nullptr && watch != nullptr) {
    SIPHON_RETURN_IF_ERROR(watch->Need(microbatch_, *collected));
  }
  const DroppedLayers* dropped = kept_.FindDropped(layer);
  if (dropped == nullptr) return absl::OkStatus();
  const StageRange layers = dropped->layers;
  if (watch != nullptr) SIPHON_RETURN_IF_ERROR(watch->BeginRecompute(microbatch_, layers));
  SIPHON_RETURN_IF_ERROR(Recompute(layers));
  if (watch != nullptr) watch->EndRecompute();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> MicrobatchPasses::Backward(
    std::vector<at::Tensor> gradients, Half half, PassWatch* watch) {
  for (int layer = layers_->end() - 1; layer >= layers_->begin(); --layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, watch, half == Half::kBoth));
    SIPHON_RETURN_IF_ERROR(Provide(layer, watch));
    SIPHON_RETURN_IF_ERROR(AtLayer(layer, [&] {
      if (layers_->IsModelEnd(layer)) {
        gradients = {at::full({}, layers_->LossScale(),
                              at::TensorOptions(at::kFloat).device(layers_->device()))};
      }
      LayerGraph graph = kept_.TakeGraph(layer);
      if (half == Half::kInput) {
        LayerGraph::InputHalf found = std::move(graph).BackwardInput(gradients);
        gradients = std::move(found.inputs);
        weight_halves_.push_back(std::move(found.weights));
      } else {
        LayerGraph::Gradients found = std::move(graph).Backward(gradients);
        gradients = std::move(found.inputs);
        parameters_->Accumulate(layer, found.parameters);
      }
    }));
    SIPHON_RETURN_IF_ERROR(Leave(layer, watch));
  }
  return gradients;
}

absl::Status MicrobatchPasses::BackwardWeight(PassWatch* watch) {
  for (int layer = layers_->end() - 1; layer >= layers_->begin(); --layer) {
    SIPHON_RETURN_IF_ERROR(Enter(layer, watch, /*gradients=*/true));
    SIPHON_RETURN_IF_ERROR(AtLayer(layer, [&] {
      LayerGraph::WeightHalf& half = weight_halves_[layers_->end() - 1 - layer];
      parameters_->Accumulate(layer, std::move(half).Compute());
    }));
    SIPHON_RETURN_IF_ERROR(Leave(layer, watch));
  }
  weight_halves_.clear();
  return absl::OkStatus();
}

}  // namespace siphon
