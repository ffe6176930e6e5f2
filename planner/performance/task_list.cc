#include "planner/performance/task_list.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace siphon {

int TaskList::Append(OutOfCoreTask task) {
  if (const std::optional<int> release = memory_.Acquire(task.acquires)) {
    task.after.push_back(*release);
  }
  const int index = static_cast<int>(list_.tasks.size());
  if (task.releases.value > 0) memory_.ReleasedBy(index, task.releases);
  list_.tasks.push_back(std::move(task));
  return index;
}

int TaskList::Forward(int layer, std::vector<int> after) {
  return Append({.kind = OutOfCoreKind::kForward,
                 .layer = layer,
                 .duration = problem_.layers[layer].forward,
                 .after = std::move(after),
                 .acquires = problem_.layers[layer].saved});
}

int TaskList::Backward(int layer, Bytes saved, std::vector<int> after) {
  return Append({.kind = OutOfCoreKind::kBackward,
                 .layer = layer,
                 .duration = problem_.layers[layer].backward,
                 .after = std::move(after),
                 .releases = saved});
}

int TaskList::CopyOut(int layer, std::vector<int> after) {
  const Bytes bytes = problem_.layers[layer].saved;
  return Append({.kind = OutOfCoreKind::kCopyOut,
                 .layer = layer,
                 .duration = CopyTime(bytes, problem_.path.out, problem_.path.latency),
                 .after = std::move(after),
                 .releases = bytes,
                 .moved = bytes});
}

int TaskList::CopyIn(int layer, Bytes bytes, Nanos duration, std::vector<int> after) {
  return Append({.kind = OutOfCoreKind::kCopyIn,
                 .layer = layer,
                 .duration = duration,
                 .after = std::move(after),
                 .acquires = bytes,
                 .moved = bytes});
}

int TaskList::Evict(int layer, Bytes bytes, Nanos duration) {
  return Append({.kind = OutOfCoreKind::kEvict,
                 .layer = layer,
                 .duration = duration,
                 .releases = bytes,
                 .moved = bytes});
}

int TaskList::Fault(int layer, Bytes bytes, Nanos duration) {
  return Append({.kind = OutOfCoreKind::kFault,
                 .layer = layer,
                 .duration = duration,
                 .acquires = bytes,
                 .moved = bytes});
}

OutOfCoreTasks TaskList::Done(int swapped_layers) && {
  list_.swapped_layers = swapped_layers;
  return std::move(list_);
}

absl::Status CheckEachLayerFits(const OutOfCoreProblem& problem) {
  for (const OutOfCoreLayer& layer : problem.layers) {
    if (layer.saved <= problem.capacity) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "layer ", layer.name, " saves ", FormatBytes(layer.saved), ", near memory has ",
        FormatBytes(problem.capacity), " for saved tensors; a smaller batch would fit"));
  }
  return absl::OkStatus();
}

}  // namespace siphon
