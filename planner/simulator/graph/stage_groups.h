#ifndef SIPHON_PLANNER_SIMULATOR_STAGE_GROUPS_H_
#define SIPHON_PLANNER_SIMULATOR_STAGE_GROUPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/memory_plan.h"
#include "planner/simulator/simulate.h"

namespace siphon {

// A group with its layers counted from the first one of its stage.
struct StageGroup {
  const TensorGroup* group = nullptr;
  const GroupChoice* choice = nullptr;
  int first = 0;
  int last = 0;
};

// The tensor groups of one stage.
class StageGroups {
 public:
  static constexpr int kNone = -1;

  int size() const { return static_cast<int>(groups_.size()); }
  const StageGroup& operator[](int group) const { return groups_[group]; }
  // Those of a kind, ascending.
  const std::vector<int>& Of(GroupKind kind) const { return of_[static_cast<size_t>(kind)]; }
  // Whether any group of the kind is not kept.
  bool MayMiss(GroupKind kind) const { return may_miss_[static_cast<size_t>(kind)]; }
  // Whether the layer is the first, or the last one of a group that is not kept.
  bool Begins(int layer) const { return !begins_.empty() && begins_[layer] != 0; }
  bool Ends(int layer) const { return !ends_.empty() && ends_[layer] != 0; }
  // The group that has the layer's tensors of that kind; kNone where they are kept.
  int At(int layer, GroupKind kind) const {
    return at_.empty() ? kNone : at_[layer][static_cast<size_t>(kind)];
  }

 private:
  friend std::vector<StageGroups> GroupsOfStages(const SimulationInput& input);

  std::vector<StageGroup> groups_;  // by GroupId
  std::array<std::vector<int>, kGroupKinds> of_;
  std::array<bool, kGroupKinds> may_miss_{};
  std::vector<std::array<int, kGroupKinds>> at_;  // [layer]; empty where all is kept
  std::vector<uint8_t> begins_;                   // [layer]; likewise
  std::vector<uint8_t> ends_;
};

// bytes * part / whole, rounded down. Requires: whole > 0.
Bytes PartOf(Bytes bytes, int64_t part, int64_t whole);

// [stage]. Refers to `input.memory`. Requires: CheckPlannedGroups.
std::vector<StageGroups> GroupsOfStages(const SimulationInput& input);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STAGE_GROUPS_H_
