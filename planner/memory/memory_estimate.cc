#include "planner/memory/memory_estimate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  if (name == "fp32") return Precision::kFloat32;
  if (name == "bf16") return Precision::kBFloat16;
  if (name == "fp16") return Precision::kFloat16;
  return absl::NotFoundError(
      absl::StrCat("unknown precision '", name, "'; known: fp32, bf16, fp16"));
}

int64_t ComputedBytes(Precision precision) { return precision == Precision::kFloat32 ? 4 : 2; }

absl::string_view MemorySourceName(MemorySource source) {
  switch (source) {
    case MemorySource::kMeasured:
      return "measured profile";
    case MemorySource::kSavedTensors:
      return "saved tensors";
    case MemorySource::kPublishedFormula:
      return "published formula";
    case MemorySource::kUnknown:
      break;
  }
  return "unknown";
}

Bytes TotalOf(const MemoryEstimate& estimate) {
  Bytes total;
  for (const MemoryByKind& worker : estimate.workers) total += Total(worker);
  return total;
}

Bytes LargestWorker(const MemoryEstimate& estimate) {
  Bytes largest;
  for (const MemoryByKind& worker : estimate.workers) largest = std::max(largest, Total(worker));
  return largest;
}

Bytes SmallestWorker(const MemoryEstimate& estimate) {
  if (estimate.workers.empty()) return Bytes();
  Bytes smallest = Total(estimate.workers.front());
  for (const MemoryByKind& worker : estimate.workers) smallest = std::min(smallest, Total(worker));
  return smallest;
}

std::vector<std::string> UnknownLayers(const MemoryEstimate& estimate) {
  std::vector<std::string> names;
  for (const StageMemory& stage : estimate.stages) {
    for (const LayerUse& layer : stage.layers) {
      if (layer.source == MemorySource::kUnknown) names.push_back(layer.name);
    }
  }
  return names;
}

}  // namespace siphon
