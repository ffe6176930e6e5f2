#ifndef SIPHON_PLANNER_PERFORMANCE_TASK_LIST_H_
#define SIPHON_PLANNER_PERFORMANCE_TASK_LIST_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "planner/performance/near_memory.h"
#include "planner/performance/out_of_core.h"

namespace siphon {

// Lists a strategy's tasks. Each function appends one and returns its index.
class TaskList {
 public:
  explicit TaskList(const OutOfCoreProblem& problem)
      : problem_(problem), memory_(problem.capacity) {}

  // Takes near memory for the layer's saved tensors.
  int Forward(int layer, std::vector<int> after = {});
  // Gives `saved` back: what the layer still holds.
  int Backward(int layer, Bytes saved, std::vector<int> after = {});
  // Gives the layer's buffer back.
  int CopyOut(int layer, std::vector<int> after);
  // Takes it again.
  int CopyIn(int layer, Bytes bytes, Nanos duration, std::vector<int> after);
  // `bytes` of other layers' pages are written out, in `duration`.
  int Evict(int layer, Bytes bytes, Nanos duration);
  // `bytes` of the layer's own pages are read in.
  int Fault(int layer, Bytes bytes, Nanos duration);

  OutOfCoreTasks Done(int swapped_layers) &&;

 private:
  int Append(OutOfCoreTask task);

  const OutOfCoreProblem& problem_;
  NearMemory memory_;
  OutOfCoreTasks list_;
};

// Every layer's buffer fits by itself. Errors: ResourceExhausted naming the first that does not.
absl::Status CheckEachLayerFits(const OutOfCoreProblem& problem);

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_TASK_LIST_H_
