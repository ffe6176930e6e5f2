#include "planner/simulator/graph/stage_groups.h"

#include "absl/numeric/int128.h"

namespace siphon {

Bytes PartOf(Bytes bytes, int64_t part, int64_t whole) {
  return Bytes(static_cast<int64_t>(
      absl::Uint128Low64(absl::uint128(bytes.value) * absl::uint128(part) / absl::uint128(whole))));
}

std::vector<StageGroups> GroupsOfStages(const SimulationInput& input) {
  std::vector<StageGroups> stages(input.stages.size());
  int first_layer = 0;  // of the stage
  for (size_t stage = 0; stage < input.memory.stages.size(); ++stage) {
    StageGroups& result = stages[stage];
    const std::vector<PlannedGroup>& groups = input.memory.stages[stage].groups;
    const size_t layers = input.layers.empty() ? 0 : input.layers[stage].size();
    std::array<int, kGroupKinds> none;
    none.fill(StageGroups::kNone);
    if (!groups.empty()) {
      result.at_.assign(layers, none);
      result.begins_.assign(layers, 0);
      result.ends_.assign(layers, 0);
    }
    for (size_t id = 0; id < groups.size(); ++id) {
      const auto& [group, choice] = groups[id];
      const StageGroup& placed = result.groups_.emplace_back(StageGroup{
          &group, &choice, group.layers.begin - first_layer, group.layers.end - first_layer - 1});
      result.of_[static_cast<size_t>(group.kind)].push_back(static_cast<int>(id));
      if (choice.placement == Placement::kKeep) continue;
      result.may_miss_[static_cast<size_t>(group.kind)] = true;
      result.begins_[placed.first] = 1;
      result.ends_[placed.last] = 1;
      for (int layer = placed.first; layer <= placed.last; ++layer) {
        result.at_[layer][static_cast<size_t>(group.kind)] = static_cast<int>(id);
      }
    }
    first_layer += static_cast<int>(layers);
  }
  return stages;
}

}  // namespace siphon
