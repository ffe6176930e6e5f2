#ifndef SIPHON_PLANNER_PERFORMANCE_NEAR_MEMORY_H_
#define SIPHON_PLANNER_PERFORMANCE_NEAR_MEMORY_H_

#include <deque>
#include <optional>

#include "planner/units.h"

namespace siphon {

// Room in near memory while a strategy's tasks are listed. Tasks that give memory back end in the
// order in which they are announced, so which of them a task must wait for is known without
// running anything.
class NearMemory {
 public:
  explicit NearMemory(Bytes capacity) : capacity_(capacity) {}

  // Takes `bytes`; returns the last task that has to end first, if any. Where even all announced
  // releases leave too little room, it waits for the last of them and holds more than the
  // capacity: the caller sees to it that this cannot happen, or pages as unified memory does.
  std::optional<int> Acquire(Bytes bytes);

  // Memory that `task` gives back when it ends.
  void ReleasedBy(int task, Bytes bytes) { releases_.push_back({task, bytes}); }

 private:
  struct Release {
    int task;
    Bytes bytes;
  };
  Bytes capacity_;
  Bytes held_;                    // by whoever acquired, less releases that were waited for
  std::deque<Release> releases_;  // not waited for yet
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_PERFORMANCE_NEAR_MEMORY_H_
