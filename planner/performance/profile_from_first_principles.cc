#include "planner/performance/profile_from_first_principles.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/memory/layer_uses.h"
#include "planner/memory/published_formula.h"
#include "planner/status.h"

namespace siphon {
namespace {

constexpr int kMoments = 2;  // of Adam

int64_t RoundedUp(int64_t amount, int64_t per_second) {
  SIPHON_CHECK(per_second > 0, "a device does something in a second");
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const absl::int128 scaled = absl::int128(amount) * kNanosPerSecond;
  return static_cast<int64_t>((scaled + per_second - 1) / per_second);
}

// In the job's precision, of one sample.
Bytes ComputedSize(const std::vector<TensorSpec>& tensors, Precision precision) {
  Bytes total;
  for (const TensorSpec& tensor : tensors) {
    const bool shrinks = tensor.dtype == DType::kFloat32;
    total += Bytes(ElementCount(tensor) *
                   (shrinks ? ComputedBytes(precision) : ElementBytes(tensor.dtype)));
  }
  return total;
}

bool KeepsItsOutput(const LayerSpec& layer) {
  if (!layer.memory) return false;
  const auto is_output = [](const SavedTensorSpec& tensor) {
    return tensor.storage == SavedStorage::kOutput;
  };
  return std::any_of(layer.memory->saved.begin(), layer.memory->saved.end(), is_output);
}

struct Activations {
  std::vector<SavedTensor> saved;
  Bytes own;  // of them, neither input nor output
  Bytes kept_for_weights;
  int tensors = 0;
};

Activations SavedByList(const LayerSpec& layer, bool input_is_kept, int64_t microbatch,
                        Precision precision) {
  Activations activations;
  const std::vector<SavedTensor> all = SavedOf(*layer.memory, microbatch, precision);
  activations.tensors = static_cast<int>(all.size());
  for (size_t index = 0; index < all.size(); ++index) {
    const SavedTensorSpec& spec = layer.memory->saved[index];
    if (spec.storage == SavedStorage::kOwn) activations.own += all[index].bytes;
    if (spec.storage == SavedStorage::kInput && input_is_kept) continue;
    activations.saved.push_back(all[index]);
    if (spec.kept_for_weights) activations.kept_for_weights += all[index].bytes;
  }
  for (const SavedTensorSpec& tensor : layer.memory->queued) {
    activations.kept_for_weights += SavedSampleBytes(tensor, precision) * microbatch;
  }
  return activations;
}

absl::StatusOr<Activations> ActivationsOf(const ModelSpec& model, size_t index, int64_t microbatch,
                                          Precision precision) {
  const LayerSpec& layer = model.layers[index];
  if (layer.memory) {
    const bool input_is_kept = index > 0 && KeepsItsOutput(model.layers[index - 1]);
    return SavedByList(layer, input_is_kept, microbatch, precision);
  }
  auto published = PublishedActivations(model, layer, microbatch, precision);
  if (!published) {
    return absl::FailedPreconditionError(
        absl::StrCat("layer ", layer.name, " (kind '", layer.kind,
                     "') does not list what it saves, and the published formula does not know it"));
  }
  Activations activations;
  activations.tensors = static_cast<int>(published->size());
  for (const SavedTensor& tensor : *published) activations.own += tensor.bytes;
  activations.kept_for_weights = activations.own;
  activations.saved = *std::move(published);
  return activations;
}

// Adam reads weight, gradient and moments and writes all but the gradient.
LayerWork OptimizerWork(const LayerProfile& layer) {
  if (layer.parameters.value == 0) return {};
  const Bytes state = layer.parameters + layer.optimizer_state;
  return {.traffic = state * 2 + layer.gradients, .kernels = 1};
}

void SetWorkspace(LayerProfile& profile, const LayerSpec& layer, int64_t microbatch) {
  if (!layer.memory) return;
  profile.forward_workspace = MostWorkspace(layer.memory->forward, microbatch);
  profile.backward_workspace = MostWorkspace(layer.memory->backward, microbatch);
}

// Sums of sizes and times stay below 63 bits. In floating point, so that this cannot overflow.
absl::Status CheckMagnitude(const ModelSpec& model, const DeviceSpec& device, int64_t microbatch,
                            Precision precision) {
  if (microbatch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("microbatch ", microbatch, " must be at least 1 sample"));
  }
  constexpr double kMostOperations = 5e17;
  constexpr double kMostBytes = 1e17;
  constexpr double kMostSeconds = 1e8;
  double flops = 0;
  double bytes = 0;
  for (const LayerSpec& layer : model.layers) {
    flops += static_cast<double>(layer.forward_flops) * static_cast<double>(microbatch);
    std::vector<TensorSpec> tensors = layer.outputs;
    if (layer.memory) {
      for (const SavedTensorSpec& tensor : layer.memory->saved) tensors.push_back(tensor.sample);
    }
    for (const TensorSpec& tensor : tensors) {
      bytes += static_cast<double>(SizeOf(tensor).value) * static_cast<double>(microbatch);
    }
  }
  const double seconds = flops / static_cast<double>(AchievedFlops(device, precision)) +
                         bytes / static_cast<double>(AchievedBandwidth(device).value);
  if (flops < kMostOperations && bytes < kMostBytes && seconds < kMostSeconds) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a microbatch of ", microbatch, " samples takes about ", flops, " operations, ", bytes,
      " bytes and ", seconds, " s, more than is counted here; write a smaller one"));
}

}  // namespace

Nanos TimeOf(const LayerWork& work, const DeviceSpec& device, Precision precision) {
  const int64_t computing = RoundedUp(work.flops, AchievedFlops(device, precision));
  const int64_t moving = RoundedUp(work.traffic.value, AchievedBandwidth(device).value);
  return Nanos(std::max(computing, moving)) + device.launch_overhead * work.kernels;
}

LayerPasses PassesOf(const LayerSizes& sizes) {
  const int kernels = std::max(1, sizes.saved_tensors);
  const bool has_weights = sizes.weights.value > 0;
  LayerPasses passes;
  passes.forward = {.flops = sizes.flops,
                    .traffic = sizes.input + sizes.weights + sizes.output + sizes.own * 2,
                    .kernels = kernels};
  passes.input_backward = {.flops = sizes.flops,
                           .traffic = sizes.output + sizes.weights + sizes.input + sizes.own * 3,
                           .kernels = kernels};
  if (has_weights) {
    passes.weight_backward = {.flops = sizes.flops,
                              .traffic = sizes.input + sizes.output + sizes.weights,
                              .kernels = kernels};
  }
  return passes;
}

absl::StatusOr<ModelProfile> ProfileFromFirstPrinciples(const ModelSpec& model,
                                                        const DeviceSpec& device,
                                                        int64_t microbatch, Precision precision) {
  SIPHON_RETURN_IF_ERROR(CheckMagnitude(model, device, microbatch, precision));
  const std::vector<int64_t> elements = OwnedElements(model);
  const ParameterBytes bytes = BytesOfParameter(precision, kMoments);
  ModelProfile profile{.model = model.options.kind,
                       .device = device.name,
                       .source = "calculated",
                       .microbatch = microbatch};
  Bytes input = ComputedSize({model.input}, precision) * microbatch;
  for (size_t index = 0; index < model.layers.size(); ++index) {
    const LayerSpec& spec = model.layers[index];
    SIPHON_ASSIGN_OR_RETURN(Activations activations,
                            ActivationsOf(model, index, microbatch, precision));
    LayerProfile layer;
    layer.name = spec.name;
    layer.parameters = Bytes(elements[index] * bytes.weight);
    layer.gradients = Bytes(elements[index] * bytes.gradient);
    layer.optimizer_state = Bytes(elements[index] * bytes.optimizer);
    layer.boundary = ComputedSize(spec.outputs, precision) * microbatch;
    layer.saved = std::move(activations.saved);
    layer.kept_for_weights = activations.kept_for_weights;
    SetWorkspace(layer, spec, microbatch);
    const int64_t used_elements = UsedElements(spec);  // a tied one is read wherever it is used
    const LayerPasses passes = PassesOf({.flops = spec.forward_flops * microbatch,
                                         .input = input,
                                         .output = layer.boundary,
                                         .weights = Bytes(used_elements * bytes.weight),
                                         .own = activations.own,
                                         .saved_tensors = activations.tensors});
    layer.forward = TimeOf(passes.forward, device, precision);
    if (index > 0) layer.input_backward = TimeOf(passes.input_backward, device, precision);
    layer.weight_backward = TimeOf(passes.weight_backward, device, precision);
    layer.optimizer = TimeOf(OptimizerWork(layer), device, precision);
    input = layer.boundary;
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

}  // namespace siphon
