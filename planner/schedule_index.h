#ifndef SIPHON_PLANNER_SCHEDULE_INDEX_H_
#define SIPHON_PLANNER_SCHEDULE_INDEX_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/schedule.h"

namespace siphon {

// A cell of a schedule: programs[worker][index]. An index just behind the last action means the end
// of the line.
struct ActionPosition {
  int worker = -1;
  int index = -1;
  friend bool operator==(const ActionPosition&, const ActionPosition&) = default;
};

// Where each action of a schedule stands, found in constant time. Immutable; refers to nothing
// outside.
class ScheduleIndex {
 public:
  // kWithoutGroups: those on tensor groups are not looked at.
  enum class Actions { kAll, kWithoutGroups };

  // Errors: FailedPrecondition with the grid when a worker, stage or microbatch does not exist, a
  // worker holds no stage, an action stands on a worker that does not hold its stage, or an action
  // stands twice. (Those on groups that belong to no microbatch may: parameters can come in for the
  // forward, and again for the backward.)
  static absl::StatusOr<ScheduleIndex> Build(const Schedule& schedule,
                                             Actions actions = Actions::kAll);

  // Place of the action in its worker's program, or -1. Stage and microbatch must exist. Requires:
  // it names no group.
  int Find(const Action& action) const {
    return index_of_[static_cast<size_t>(action.kind)][Slot(action)];
  }
  bool Has(const Action& action) const { return Find(action) >= 0; }

 private:
  ScheduleIndex(int stages, int microbatches);
  size_t Slot(const Action& action) const {
    const auto stage = static_cast<size_t>(action.stage.value);
    if (!HasMicrobatch(action.kind)) return stage;
    return stage * microbatches_ + static_cast<size_t>(action.microbatch.value);
  }

  size_t microbatches_ = 0;
  std::array<std::vector<int>, kActionKinds> index_of_;
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SCHEDULE_INDEX_H_
