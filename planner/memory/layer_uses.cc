#include "planner/memory/layer_uses.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "planner/memory/published_formula.h"
#include "planner/status.h"

namespace siphon {
namespace {

// Bytes that no worker can hold, far below where sums leave 63 bits.
constexpr double kMostBytes = 1e18;

int64_t ElementBytesIn(DType dtype, SavedPrecision saved, Precision precision) {
  if (dtype != DType::kFloat32 || saved == SavedPrecision::kFloat32) return ElementBytes(dtype);
  return ComputedBytes(precision);
}

double ApproximateBytes(const SavedTensorSpec& tensor) {
  double bytes = ElementBytes(tensor.sample.dtype);
  for (const int64_t extent : tensor.sample.shape) bytes *= static_cast<double>(extent);
  return bytes;
}

// Bytes of the whole job in floating point, generously: every microbatch live, every parameter
// with `versions` copies.
double GenerousBytes(const MemoryInputs& inputs) {
  double activations = 0;
  for (const LayerSpec& layer : inputs.model->layers) {
    if (layer.memory.has_value()) {
      for (const SavedTensorSpec& tensor : layer.memory->saved) {
        activations += ApproximateBytes(tensor);
      }
    }
    const ModelOptions& options = inputs.model->options;
    const auto sequence = static_cast<double>(options.sequence_length);
    activations += sequence * (68.0 * static_cast<double>(options.hidden) +
                               10.0 * static_cast<double>(options.heads) * sequence);
  }
  double parameters = 0;
  for (const Parameter& parameter : CanonicalParameters(*inputs.model)) {
    double elements = 1;
    for (const int64_t extent : parameter.shape) elements *= static_cast<double>(extent);
    parameters += elements;
  }
  const auto microbatches = static_cast<double>(inputs.schedule->microbatches);
  return activations * static_cast<double>(inputs.microbatch) * (microbatches + 2) +
         parameters * (16.0 + 4.0 * (inputs.moments + microbatches));
}

}  // namespace

absl::Status CheckMemoryInputs(const MemoryInputs& inputs) {
  const int layers = static_cast<int>(inputs.model->layers.size());
  const int stages = static_cast<int>(inputs.partition->stages.size());
  if (stages != StageCount(*inputs.schedule)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a partition into ", stages, " stages and a schedule of ", StageCount(*inputs.schedule)));
  }
  if (inputs.partition->stages.back().end != layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a partition of ", inputs.partition->stages.back().end, " layers and a model of ", layers));
  }
  const size_t workers = static_cast<size_t>(WorkerCount(*inputs.schedule));
  if (!inputs.communication.empty() && inputs.communication.size() != workers) {
    return absl::InvalidArgumentError(absl::StrCat("communication buffers of ",
                                                   inputs.communication.size(), " workers; the ",
                                                   "schedule has ", workers));
  }
  if (inputs.profile != nullptr) {
    const ModelProfile& profile = *inputs.profile;
    if (static_cast<int>(profile.layers.size()) != layers) {
      return absl::InvalidArgumentError(
          absl::StrCat("the profile has ", profile.layers.size(), " layers, the model ", layers));
    }
    if (profile.microbatch != inputs.microbatch) {
      return absl::InvalidArgumentError(absl::StrCat("the profile was taken with a microbatch of ",
                                                     profile.microbatch, ", the job has ",
                                                     inputs.microbatch));
    }
  }
  const double generous = GenerousBytes(inputs);
  if (!(generous < kMostBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job's tensors come to about ", generous,
        " bytes, beyond what can be counted (1e18); check microbatch, sequence length and sizes"));
  }
  return absl::OkStatus();
}

std::vector<int64_t> OwnedElements(const ModelSpec& model) {
  std::vector<int64_t> owned(model.layers.size());
  for (const Parameter& parameter : CanonicalParameters(model)) {
    owned[parameter.uses.front().layer] += ElementCount({DType::kFloat32, parameter.shape});
  }
  return owned;
}

int64_t UsedElements(const LayerSpec& layer) {
  int64_t elements = 0;
  for (const ParameterSpec& parameter : layer.parameters) {
    elements += ElementCount({DType::kFloat32, parameter.shape});
  }
  return elements;
}

Bytes SavedSampleBytes(const SavedTensorSpec& tensor, Precision precision) {
  return Bytes(ElementCount(tensor.sample) *
               ElementBytesIn(tensor.sample.dtype, tensor.precision, precision));
}

Bytes SavedMicrobatchBytes(const SavedTensorSpec& tensor, int64_t microbatch, Precision precision) {
  return SavedSampleBytes(tensor, precision) * (tensor.sample.shape.empty() ? 1 : microbatch);
}

std::vector<SavedTensor> SavedOf(const LayerMemory& memory, int64_t microbatch,
                                 Precision precision) {
  constexpr int kMillion = 1'000'000;
  std::vector<SavedTensor> saved;
  for (const SavedTensorSpec& tensor : memory.saved) {
    const int64_t all = memory.saved.back().flops_before;
    const auto made =
        all == 0 ? 0 : static_cast<int>(absl::int128(tensor.flops_before) * kMillion / all);
    saved.push_back({.name = tensor.name,
                     .bytes = SavedMicrobatchBytes(tensor, microbatch, precision),
                     .made_ppm = made});
  }
  return saved;
}

std::vector<int> LiveAtFullestMoment(const Schedule& schedule, const std::vector<Bytes>& bytes) {
  std::vector<int> at_peak(schedule.worker_of_stage.size());
  for (const std::vector<Action>& program : schedule.programs) {
    absl::flat_hash_set<std::pair<int, int>> live;
    std::vector<int> count(schedule.worker_of_stage.size());
    Bytes now;
    Bytes peak(-1);
    std::vector<int> fullest = count;
    for (const Action& action : program) {
      const std::pair<int, int> key{action.stage.value, action.microbatch.value};
      if (action.kind == ActionKind::kForward && live.insert(key).second) {
        ++count[key.first];
        now += bytes[key.first];
        if (now > peak) {
          peak = now;
          fullest = count;
        }
      } else if ((action.kind == ActionKind::kBackward ||
                  action.kind == ActionKind::kBackwardWeight) &&
                 live.erase(key) > 0) {
        --count[key.first];
        now -= bytes[key.first];
      }
    }
    for (size_t stage = 0; stage < count.size(); ++stage) at_peak[stage] += fullest[stage];
  }
  return at_peak;
}

}  // namespace siphon
