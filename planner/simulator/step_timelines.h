#ifndef SIPHON_PLANNER_SIMULATOR_STEP_TIMELINES_H_
#define SIPHON_PLANNER_SIMULATOR_STEP_TIMELINES_H_

#include "planner/schedule.h"
#include "planner/simulator/engine/run_task_graph.h"
#include "planner/simulator/graph/step_graph.h"
#include "planner/simulator/simulated_step.h"

namespace siphon {

// Whether the result has lanes, which are half of the work.
enum class LaneDetail { kWithLanes, kWithoutLanes };

// Step time, timelines, lanes, waits and both idle fractions; the memory is left empty. Requires:
// nothing in the run is stuck.
SimulatedStep StepTimelines(const Schedule& schedule, const StepGraph& step, const TaskRun& run,
                            LaneDetail detail = LaneDetail::kWithLanes);

}  // namespace siphon

#endif  // SIPHON_PLANNER_SIMULATOR_STEP_TIMELINES_H_
