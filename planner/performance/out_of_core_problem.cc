#include "planner/performance/out_of_core_problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {

Bytes ResidentBytes(const ModelProfile& profile) {
  Bytes total;
  Bytes workspace;
  for (const LayerProfile& layer : profile.layers) {
    total += layer.parameters + layer.gradients + layer.optimizer_state;
    workspace = std::max({workspace, layer.forward_workspace, layer.backward_workspace});
  }
  return total + workspace;
}

absl::StatusOr<OutOfCoreProblem> OutOfCoreProblemOf(const ModelProfile& profile,
                                                    const FarMemoryPath& path, Bytes near_memory) {
  const Bytes resident = ResidentBytes(profile);
  if (resident >= near_memory) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "weights, gradients, optimizer state and workspace take ", FormatBytes(resident),
        ", near memory has ", FormatBytes(near_memory), "; nothing is left for saved tensors"));
  }
  OutOfCoreProblem problem;
  problem.path = path;
  problem.capacity = near_memory - resident;
  for (const LayerProfile& layer : profile.layers) {
    problem.layers.push_back({layer.name, layer.forward,
                              layer.input_backward + layer.weight_backward, SavedBytes(layer)});
  }
  return problem;
}

}  // namespace siphon
