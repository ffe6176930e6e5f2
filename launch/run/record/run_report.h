#ifndef SIPHON_LAUNCH_RUN_RECORD_RUN_REPORT_H_
#define SIPHON_LAUNCH_RUN_RECORD_RUN_REPORT_H_

#include <cstdint>
#include <vector>

#include "launch/output/timeline_page.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulated_step.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// A step of a run.
struct MeasuredStep {
  int64_t step = 0;
  std::vector<WorkerTimeline> workers;
  std::vector<Bytes> peaks;  // [worker], of all steps so far, by the ledgers
};

// One step of a run beside what was predicted of it: both timelines worker by worker on one scale
// where the plan's costs were measured or calculated; where they are unit costs the predicted one
// is only a shape, and has a picture of its own.
TimelinePage RunReport(const PlanText& plan, const SimulatedStep& predicted,
                       const MeasuredStep& step);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_RECORD_RUN_REPORT_H_
