#include "planner/memory/estimate_published.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/memory/layer_uses.h"
#include "planner/memory/published_formula.h"
#include "planner/status.h"

namespace siphon {
namespace {

LayerUse UseOf(const MemoryInputs& inputs, const LayerSpec& layer) {
  LayerUse use{.name = layer.name};
  auto published = PublishedActivations(*inputs.model, layer, inputs.microbatch, inputs.precision);
  if (published.has_value()) {
    use.saved = *std::move(published);
    use.source = MemorySource::kPublishedFormula;
  } else if (layer.memory.has_value()) {
    use.saved = SavedOf(*layer.memory, inputs.microbatch, inputs.precision);
    use.source = MemorySource::kSavedTensors;
  }
  return use;
}

Bytes SumOf(const std::vector<LayerUse>& layers) {
  Bytes total;
  for (const LayerUse& layer : layers) {
    for (const SavedTensor& tensor : layer.saved) total += tensor.bytes;
  }
  return total;
}

}  // namespace

absl::StatusOr<MemoryEstimate> EstimatePublished(const MemoryInputs& inputs) {
  SIPHON_RETURN_IF_ERROR(CheckMemoryInputs(inputs));
  const ModelSpec& model = *inputs.model;
  const ParameterBytes bytes = BytesOfParameter(inputs.precision, inputs.moments);
  const std::vector<int64_t> owned = OwnedElements(model);
  const std::vector<int> versions = PeakWeightVersions(*inputs.schedule);
  MemoryEstimate estimate;
  std::vector<Bytes> activations;
  for (int index = 0; index < StageCount(*inputs.schedule); ++index) {
    StageMemory& stage = estimate.stages.emplace_back();
    stage.stage = StageId(index);
    stage.worker = inputs.schedule->worker_of_stage[index];
    stage.weight_versions = versions[index];
    const StageRange& range = inputs.partition->stages[index];
    for (int layer = range.begin; layer < range.end; ++layer) {
      stage.layers.push_back(UseOf(inputs, model.layers[layer]));
      stage.layers.back().parameters = Bytes(bytes.weight * owned[layer]);
      stage.memory[MemoryKind::kParameters] += Bytes(bytes.weight * owned[layer]);
      stage.memory[MemoryKind::kGradients] += Bytes(bytes.gradient * owned[layer]);
      stage.memory[MemoryKind::kOptimizer] += Bytes(bytes.optimizer * owned[layer]);
    }
    stage.memory[MemoryKind::kWeightVersions] =
        stage.memory[MemoryKind::kParameters] * (versions[index] - 1);
    activations.push_back(SumOf(stage.layers));
  }
  const std::vector<int> live = LiveAtFullestMoment(*inputs.schedule, activations);
  estimate.workers.resize(WorkerCount(*inputs.schedule));
  for (StageMemory& stage : estimate.stages) {
    stage.live_microbatches = live[stage.stage.value];
    stage.memory[MemoryKind::kActivations] =
        activations[stage.stage.value] * stage.live_microbatches;
    MemoryByKind& worker = estimate.workers[stage.worker.value];
    worker = worker + stage.memory;
  }
  return estimate;
}

}  // namespace siphon
