#include "planner/performance/out_of_core_equations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siphon {

Nanos SectionTime(Nanos compute, Nanos copy) { return std::max(compute, copy); }

double SectionUtilization(Nanos compute, Nanos copy) {
  const Nanos section = SectionTime(compute, copy);
  if (section.value == 0) return 1.0;
  return static_cast<double>(compute.value) / static_cast<double>(section.value);
}

absl::StatusOr<EqualLayers> EqualLayersOf(const OutOfCoreProblem& problem) {
  if (problem.layers.empty()) return absl::InvalidArgumentError("there are no layers");
  const OutOfCoreLayer& first = problem.layers[0];
  for (const OutOfCoreLayer& layer : problem.layers) {
    if (layer.forward == first.forward && layer.backward == first.backward &&
        layer.saved == first.saved) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", layer.name, " differs from layer ", first.name,
                     "; the closed form is for equal layers, simulate these"));
  }
  EqualLayers equal;
  equal.layers = static_cast<int64_t>(problem.layers.size());
  equal.forward = first.forward;
  equal.backward = first.backward;
  equal.copy_out = CopyTime(first.saved, problem.path.out, problem.path.latency);
  equal.copy_in = CopyTime(first.saved, problem.path.in, problem.path.latency);
  equal.saved = first.saved;
  equal.buffers = equal.layers;
  if (first.saved.value > 0) {
    equal.buffers = std::min(equal.layers, problem.capacity.value / first.saved.value);
  }
  return equal;
}

std::optional<Nanos> CapacityBasedCatchUp(const EqualLayers& equal) {
  const int64_t resident = equal.buffers;
  if (resident >= equal.layers) return std::nullopt;
  const int64_t copy = equal.copy_in.value;
  const int64_t compute = equal.backward.value;
  if (resident == 1) return copy > 0 ? std::optional(equal.backward) : std::nullopt;
  if (copy <= compute) return std::nullopt;
  // The first n with compute + (n - K) copy > (n - 1) compute.
  const int64_t excess = resident * copy - 2 * compute;
  const int64_t caught = std::max(resident + 1, excess / (copy - compute) + 1);
  if (caught > equal.layers) return std::nullopt;
  return equal.backward * (caught - 1);
}

double CapacityBasedUtilization(const EqualLayers& equal, Nanos since_backward_began) {
  const std::optional<Nanos> catch_up = CapacityBasedCatchUp(equal);
  if (!catch_up || since_backward_began < *catch_up) return 1.0;
  return SectionUtilization(equal.backward, equal.copy_in);
}

}  // namespace siphon
