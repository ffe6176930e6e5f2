#ifndef SIPHON_LAUNCH_RUN_RUN_REPORT_H_
#define SIPHON_LAUNCH_RUN_RUN_REPORT_H_

#include <cstdint>
#include <vector>

#include "launch/output/timeline_page.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulated_step.h"
#include "planner/timeline.h"

namespace siphon {

// One step of a run beside what was predicted of it: both timelines worker by worker on one scale
// where the plan's costs were measured or calculated; where they are unit costs the predicted one
// is only a shape, and has a picture of its own.
TimelinePage RunReport(const PlanText& plan, const SimulatedStep& predicted,
                       const std::vector<WorkerTimeline>& measured, int64_t step);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RUN_REPORT_H_
