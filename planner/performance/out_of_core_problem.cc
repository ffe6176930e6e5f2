#include "planner/performance/out_of_core_problem.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/status.h"

namespace siphon {
namespace {

// So that no sum of copies, at a share of the rate and each way, leaves 63 bits.
absl::Status CheckPath(const ModelProfile& profile, const FarMemoryPath& path, Bytes near_memory) {
  constexpr int64_t kMost = 1'000'000'000'000'000'000;  // bytes, or bytes a second
  constexpr double kMostSeconds = 1e8;                  // three years
  const BytesPerSecond slowest = std::min(path.out, path.in);
  if (slowest.value < 1'000 || std::max(path.out, path.in).value > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("a path to far memory of ", FormatRate(path.out), " out and ",
                     FormatRate(path.in), " in; each must be between 1 kB/s and 1000000 TB/s"));
  }
  if (near_memory.value > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("near memory of ", FormatBytes(near_memory), " is more than can be counted"));
  }
  double bytes = 0;
  for (const LayerProfile& layer : profile.layers) {
    bytes += static_cast<double>(SavedBytes(layer).value);
  }
  const double seconds =
      bytes / static_cast<double>(slowest.value) +
      1e-9 * static_cast<double>(path.latency.value) * static_cast<double>(profile.layers.size());
  if (seconds < kMostSeconds && path.latency.value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("copying what the layers save takes ", seconds,
                   " s each way; write a faster link, a shorter latency or a smaller batch"));
}

}  // namespace

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
  SIPHON_RETURN_IF_ERROR(CheckPath(profile, path, near_memory));
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
