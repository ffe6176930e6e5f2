// vDNN-like and vDNN++-like swapping: every layer's buffer leaves after its forward, the last one's
// too, and comes back for the backward (the paper, 3.4 and Figures 2 and 3).

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/performance/out_of_core_equations.h"
#include "planner/performance/strategies.h"
#include "planner/performance/task_list.h"
#include "planner/status.h"

namespace siphon {
namespace {

Nanos CopyOutTime(const OutOfCoreProblem& problem, size_t layer) {
  return CopyTime(problem.layers[layer].saved, problem.path.out, problem.path.latency);
}

Nanos CopyInTime(const OutOfCoreProblem& problem, size_t layer) {
  return CopyTime(problem.layers[layer].saved, problem.path.in, problem.path.latency);
}

int LayerCount(const OutOfCoreProblem& problem) { return static_cast<int>(problem.layers.size()); }

// Two neighbours are in near memory at once: one in use, one on its way.
absl::Status CheckNeighboursFit(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckEachLayerFits(problem));
  for (size_t index = 1; index < problem.layers.size(); ++index) {
    const OutOfCoreLayer& before = problem.layers[index - 1];
    const OutOfCoreLayer& layer = problem.layers[index];
    if (before.saved + layer.saved <= problem.capacity) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "layers ", before.name, " and ", layer.name, " save ",
        FormatBytes(before.saved + layer.saved), ", near memory has ",
        FormatBytes(problem.capacity),
        " for saved tensors; vDNN-like swapping holds neighbours at once, a smaller batch would "
        "fit"));
  }
  return absl::OkStatus();
}

int SwappedLayers(const OutOfCoreProblem& problem) {
  int count = 0;
  for (const OutOfCoreLayer& layer : problem.layers) count += layer.saved.value > 0 ? 1 : 0;
  return count;
}

int ListCopyIn(TaskList& list, const OutOfCoreProblem& problem, int layer, std::vector<int> after) {
  return list.CopyIn(layer, problem.layers[layer].saved, CopyInTime(problem, layer),
                     std::move(after));
}

}  // namespace

// Compute and copy stream synchronise at the end of each section. Forward: layer l computes while
// layer l - 1 leaves. Backward (equation 7): layer l computes while layer l - 1 comes back.
absl::StatusOr<OutOfCoreTasks> VdnnTasks(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckNeighboursFit(problem));
  const int layers = LayerCount(problem);
  TaskList list(problem);
  std::vector<int> outs;
  for (int layer = 0; layer < layers; ++layer) {
    // The section before this one ended with the copy of layer l - 2; the copies' lane keeps the
    // rest of the order.
    const int forward =
        list.Forward(layer, layer >= 2 ? std::vector<int>{outs[layer - 2]} : std::vector<int>{});
    outs.push_back(list.CopyOut(layer, {forward}));
  }
  if (layers == 0) return std::move(list).Done(0);
  int in = ListCopyIn(list, problem, layers - 1, {outs.back()});
  int backward = -1;
  for (int layer = layers - 1; layer >= 0; --layer) {
    const int needed = in;
    if (layer > 0) {
      // Starts with this layer's section: after the backward before it and the copy of this layer.
      const std::vector<int> after =
          backward < 0 ? std::vector<int>{needed} : std::vector<int>{needed, backward};
      in = ListCopyIn(list, problem, layer - 1, after);
    }
    backward = list.Backward(layer, problem.layers[layer].saved, {needed});
  }
  return std::move(list).Done(SwappedLayers(problem));
}

// Equation 7 summed over both passes, with the turn between them: the last layer leaves and comes
// back while nothing computes (Figure 3). Exact for layers of any sizes.
absl::StatusOr<Nanos> VdnnClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckNeighboursFit(problem));
  if (problem.layers.empty()) return Nanos(0);
  const size_t last = problem.layers.size() - 1;
  Nanos total = problem.layers[0].forward + CopyOutTime(problem, last) + CopyInTime(problem, last) +
                problem.layers[0].backward;
  for (size_t layer = 1; layer <= last; ++layer) {
    total += SectionTime(problem.layers[layer].forward, CopyOutTime(problem, layer - 1));
    total += SectionTime(problem.layers[layer].backward, CopyInTime(problem, layer - 1));
  }
  return total;
}

// Without the synchronisation: a forward starts as soon as there is room, a copy as soon as its
// lane and room are free, a backward as soon as its buffer is back.
absl::StatusOr<OutOfCoreTasks> VdnnPlusPlusTasks(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckEachLayerFits(problem));
  const int layers = LayerCount(problem);
  TaskList list(problem);
  int out = 0;
  for (int layer = 0; layer < layers; ++layer) {
    out = list.CopyOut(layer, {list.Forward(layer)});
  }
  for (int layer = layers - 1; layer >= 0; --layer) {
    const int in = ListCopyIn(list, problem, layer, {out});
    list.Backward(layer, problem.layers[layer].saved, {in});
  }
  return std::move(list).Done(SwappedLayers(problem));
}

// With room for two buffers equal layers gain nothing over vDNN: the slower of computation and copy
// sets the pace of every section. With room for one, computation and copies alternate.
absl::StatusOr<Nanos> VdnnPlusPlusClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckEachLayerFits(problem));
  SIPHON_ASSIGN_OR_RETURN(const EqualLayers equal, EqualLayersOf(problem));
  const Nanos round_trip = equal.copy_out + equal.copy_in;
  if (equal.buffers == 1) {
    return (equal.forward + equal.backward + round_trip) * equal.layers;
  }
  return equal.forward + equal.backward + round_trip +
         (SectionTime(equal.forward, equal.copy_out) + SectionTime(equal.backward, equal.copy_in)) *
             (equal.layers - 1);
}

}  // namespace siphon
