// In memory, and capacity-based swapping: only what does not fit leaves, the earliest layers, and
// it comes back as soon as there is room (the paper, 3.5 and Figure 4).

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/performance/out_of_core_equations.h"
#include "planner/performance/strategies.h"
#include "planner/performance/task_list.h"
#include "planner/status.h"

namespace siphon {
namespace {

absl::Status CheckAllFits(const OutOfCoreProblem& problem) {
  const Bytes saved = SavedBytes(problem);
  if (saved <= problem.capacity) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("all layers save ", FormatBytes(saved), ", near memory has ",
                   FormatBytes(problem.capacity), " for saved tensors"));
}

// The first layers, so many that the others fit together.
int LayersToSwap(const OutOfCoreProblem& problem) {
  Bytes rest = SavedBytes(problem);
  int swapped = 0;
  while (rest > problem.capacity) rest -= problem.layers[swapped++].saved;
  return swapped;
}

// One pass of equal layers of which `moved` must be copied, all but the resident ones at its other
// end. Two or more buffers: either nothing waits, or the copies follow each other from the end of
// the first computation on (forward) or to the begin of the last (backward, its mirror image).
Nanos PassTime(int64_t layers, int64_t moved, int64_t buffers, Nanos compute, Nanos copy) {
  if (moved == 0) return compute * layers;
  if (buffers == 1) return compute * layers + copy * moved;
  return compute + std::max(compute * (layers - 1), compute + copy * moved);
}

}  // namespace

absl::StatusOr<OutOfCoreTasks> InMemoryTasks(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckAllFits(problem));
  const int layers = static_cast<int>(problem.layers.size());
  TaskList list(problem);
  for (int layer = 0; layer < layers; ++layer) list.Forward(layer);
  for (int layer = layers - 1; layer >= 0; --layer) {
    list.Backward(layer, problem.layers[layer].saved);
  }
  return std::move(list).Done(0);
}

absl::StatusOr<Nanos> InMemoryClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckAllFits(problem));
  return ComputeTime(problem);
}

absl::StatusOr<OutOfCoreTasks> CapacityBasedTasks(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckEachLayerFits(problem));
  const int layers = static_cast<int>(problem.layers.size());
  const int swapped = LayersToSwap(problem);
  TaskList list(problem);
  int last_out = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const int forward = list.Forward(layer);
    if (layer < swapped) last_out = list.CopyOut(layer, {forward});
  }
  for (int layer = layers - 1; layer >= 0; --layer) {
    const Bytes saved = problem.layers[layer].saved;
    std::vector<int> after;
    if (layer < swapped) {
      const Nanos copy = CopyTime(saved, problem.path.in, problem.path.latency);
      after.push_back(list.CopyIn(layer, saved, copy, {last_out}));
    }
    list.Backward(layer, saved, after);
  }
  return std::move(list).Done(swapped);
}

absl::StatusOr<Nanos> CapacityBasedClosedForm(const OutOfCoreProblem& problem) {
  SIPHON_RETURN_IF_ERROR(CheckEachLayerFits(problem));
  SIPHON_ASSIGN_OR_RETURN(const EqualLayers equal, EqualLayersOf(problem));
  const int64_t moved = equal.layers - equal.buffers;
  return PassTime(equal.layers, moved, equal.buffers, equal.forward, equal.copy_out) +
         PassTime(equal.layers, moved, equal.buffers, equal.backward, equal.copy_in);
}

}  // namespace siphon
