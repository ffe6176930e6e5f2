#include "planner/steps_on_host.h"

#include <algorithm>
#include <limits>

namespace siphon {

bool StepsOnHost(const StagePlan& stage, const PlannedGroup& planned) {
  return stage.update == UpdatePlace::kHost && planned.group.kind == GroupKind::kOptimizerState &&
         planned.choice.placement == Placement::kHostSwap && !planned.choice.steps_on_device;
}

std::vector<StageRange> LayersSteppedOnHost(const StagePlan& stage) {
  if (stage.update != UpdatePlace::kHost) return {};
  std::vector<StageRange> on_device;
  for (const PlannedGroup& planned : stage.groups) {
    if (planned.group.kind != GroupKind::kOptimizerState || StepsOnHost(stage, planned)) continue;
    on_device.push_back(planned.group.layers);
  }
  std::sort(on_device.begin(), on_device.end(),
            [](const StageRange& a, const StageRange& b) { return a.begin < b.begin; });
  std::vector<StageRange> on_host;
  int begin = 0;
  for (const StageRange& layers : on_device) {
    if (begin < layers.begin) on_host.push_back({begin, layers.begin});
    begin = std::max(begin, layers.end);
  }
  on_host.push_back({begin, std::numeric_limits<int>::max()});
  return on_host;
}

bool StepsOnHost(const StagePlan& stage, int layer) {
  return AllStepOnHost(stage, {layer, layer + 1});
}

bool AnyStepsOnHost(const StagePlan& stage, const StageRange& layers) {
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    if (StepsOnHost(stage, layer)) return true;
  }
  return false;
}

bool AllStepOnHost(const StagePlan& stage, const StageRange& layers) {
  return stage.update == UpdatePlace::kHost &&
         std::none_of(stage.groups.begin(), stage.groups.end(), [&](const PlannedGroup& planned) {
           return planned.group.kind == GroupKind::kOptimizerState &&
                  !StepsOnHost(stage, planned) && Overlap(planned.group.layers, layers);
         });
}

}  // namespace siphon
