#ifndef SIPHON_LAUNCH_RUN_STEP_RECORD_H_
#define SIPHON_LAUNCH_RUN_STEP_RECORD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/coordinate.h"
#include "planner/timeline.h"

namespace siphon {

// What each worker tells all others after a training step.
struct StepRecord {
  int64_t peak_bytes = 0;      // of this step, by the ledger
  int64_t busy_ns = 0;         // sum of the timeline's busy intervals
  int64_t wait_ns = 0;         // and of its waits
  int64_t recompute_ns = 0;    // part of busy_ns
  int32_t stop_requested = 0;  // any worker's request stops all
  int32_t unused = 0;          // keeps the record free of padding
};

// What each worker adds to a validation: both sums, 0 unless it holds the last stage.
struct ValidationSum {
  double loss = 0;  // of all targets
  double targets = 0;
};

// Fills in the times of `timeline`; the rest is the caller's.
StepRecord SummariseTimeline(const WorkerTimeline& timeline);

// Collective: every worker's timeline on every worker.
absl::StatusOr<std::vector<WorkerTimeline>> GatherTimelines(Coordinator& coordinator,
                                                            const WorkerTimeline& mine);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_STEP_RECORD_H_
