#ifndef SIPHON_PLANNER_SIMULATOR_LENT_MEMORY_H_
#define SIPHON_PLANNER_SIMULATOR_LENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/units.h"

namespace siphon {

// Who has how much of what, moment by moment: a step is cut into moments of equal length, and each
// figure is the most within its moment. A step of at most kMostMoments nanoseconds is seen exactly.
struct LentMemory {
  static constexpr int64_t kMostMoments = 1024;

  std::vector<std::vector<Bytes>> own;  // [worker][moment]: what it holds, but for loans to others
  std::vector<std::vector<Bytes>> parked;  // [worker][moment]: what it has with other devices
  friend bool operator==(const LentMemory&, const LentMemory&) = default;
};

// [worker]: the most that each holds of its own.
std::vector<Bytes> OwnPeaks(const LentMemory& lent);

// One such curve while it is written down, from its beginning to its end.
class MomentCurve {
 public:
  // From the level `begin` on, for a step of that length.
  MomentCurve(Bytes begin, Nanos step_time);

  // Requires: `now` never decreases, and is at most the step's length.
  void Change(Bytes bytes, Nanos now);
  std::vector<Bytes> Take();

 private:
  void GoTo(size_t moment);

  Nanos length_;  // of a moment
  Bytes level_;
  size_t now_ = 0;           // moment
  std::vector<Bytes> most_;  // [moment]; those behind now_ are not written yet
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_LENT_MEMORY_H_
