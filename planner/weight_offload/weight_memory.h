#ifndef SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_MEMORY_H_
#define SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_MEMORY_H_

#include <optional>
#include <utility>
#include <vector>

#include "planner/units.h"

namespace siphon {

// Device memory over the time of a step that is being planned: who takes and gives back how much,
// and from when on there is room for more.
class WeightMemory {
 public:
  // Nothing is known after time 0 yet, when `held` bytes are in memory.
  WeightMemory(Bytes capacity, Bytes held) : capacity_(capacity), held_(held) {}

  void Take(Nanos time, Bytes bytes) { Insert({time, bytes, {}}); }
  // Back when the last of these tasks ends, at `time`.
  void GiveBack(Nanos time, Bytes bytes, std::vector<int> ends) {
    Insert({time, Bytes(0) - bytes, std::move(ends)});
  }

  // The earliest moment, not before `from`, from which on `bytes` more fit for good, next to all
  // that is known. Nothing if they never do. Cheap when `from` is near the end of what is known.
  std::optional<Nanos> EarliestFit(Nanos from, Bytes bytes) const;

  // Tasks whose ends give memory back at that moment.
  std::vector<int> EndsAt(Nanos time) const;

 private:
  struct Change {
    Nanos time;
    Bytes bytes;
    std::vector<int> ends;
  };
  void Insert(Change change);

  const Bytes capacity_;
  Bytes held_;                   // after the last change
  std::vector<Change> changes_;  // by time; at one moment what is given back comes first
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_WEIGHT_OFFLOAD_WEIGHT_MEMORY_H_
