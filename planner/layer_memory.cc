#include "planner/layer_memory.h"

#include <algorithm>

namespace siphon {

Bytes MostWorkspace(const std::vector<WorkspaceMoment>& moments, int64_t microbatch) {
  Bytes most;
  for (const WorkspaceMoment& moment : moments) {
    most = std::max(most, moment.per_sample * microbatch + moment.fixed);
  }
  return most;
}

}  // namespace siphon
