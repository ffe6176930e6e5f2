#ifndef SIPHON_PLANNER_LOWERING_STAGE_OPTIONS_H_
#define SIPHON_PLANNER_LOWERING_STAGE_OPTIONS_H_

#include "planner/ids.h"
#include "planner/lowering/lower_memory_plan.h"

namespace siphon {

// What holds for a stage: its own, or the default for all.
inline SwapTiming TimingOf(const LowerMemoryOptions& options, StageId stage) {
  return options.timing.empty() ? SwapTiming{} : options.timing[stage.value];
}
inline DirectBackward DirectOf(const LowerMemoryOptions& options, StageId stage) {
  return options.direct.empty() ? DirectBackward::kLeave : options.direct[stage.value];
}
inline WeightResidence WeightsOf(const LowerMemoryOptions& options, StageId stage) {
  return options.weights.empty() ? WeightResidence::kWholeActions : options.weights[stage.value];
}
inline StateTimes StateTimesOf(const LowerMemoryOptions& options, StageId stage) {
  return options.state_times.empty() ? StateTimes{} : options.state_times[stage.value];
}

}  // namespace siphon

#endif  // SIPHON_PLANNER_LOWERING_STAGE_OPTIONS_H_
