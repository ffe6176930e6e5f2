#include "planner/simulator/engine/slowed_copies.h"

#include <map>

namespace siphon {

std::vector<SlowedCopy> FindSlowedCopies(const TaskRun& run) {
  std::vector<SlowedCopy> slowed;
  std::map<TaskId, LimitChange> open;  // of copies that something slows
  for (const LimitChange& change : run.limits) {
    if (const auto found = open.find(change.copy); found != open.end()) {
      const LimitChange& last = found->second;
      if (change.since > last.since) {
        slowed.push_back(
            {.copy = change.copy, .by = last.by, .begin = last.since, .end = change.since});
      }
      open.erase(found);
    }
    if (change.by != CapacityId(-1)) open.emplace(change.copy, change);
  }
  return slowed;
}

}  // namespace siphon
