#ifndef SIPHON_LAUNCH_RUN_SEAT_STEP_RECORD_H_
#define SIPHON_LAUNCH_RUN_SEAT_STEP_RECORD_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/run/seat/coordinate.h"
#include "planner/memory_plan.h"
#include "planner/timeline.h"
#include "planner/units.h"
#include "swap/parking_layout.h"

namespace siphon {

// What each worker tells all others after a training step.
struct StepRecord {
  int64_t peak_bytes = 0;    // of this step, by the ledger
  int64_t busy_ns = 0;       // sum of the timeline's busy intervals
  int64_t wait_ns = 0;       // and of its waits
  int64_t swap_wait_ns = 0;  // part of wait_ns, for copies
  int64_t recompute_ns = 0;  // part of busy_ns
  int64_t out_to_peers_bytes = 0;
  int64_t out_to_host_bytes = 0;
  int64_t out_to_nvme_bytes = 0;
  int64_t second_choices = 0;  // groups at their second choice in this step
  double slow_factor = 0;      // of slow_place
  int32_t slow_place = 0;      // of this worker's links: PlaceNumber; 0: none was found slow
  int32_t refuses = 0;         // takes back what it lends
  int32_t stop_requested = 0;  // any worker's request stops all
  int32_t unused = 0;          // keeps the record free of padding
};

// What each worker adds to a validation: both sums, 0 unless it holds the last stage.
struct ValidationSum {
  double loss = 0;  // of all targets
  double targets = 0;
};

// A place as a number above 0, and back.
int32_t PlaceNumber(const ParkingPlace& place);
ParkingPlace PlaceOfNumber(int32_t number);

// Fills in the times of `timeline`; the rest is the caller's.
StepRecord SummariseTimeline(const WorkerTimeline& timeline);

// What left the worker's memory in the step, by tier.
void SetBytesOut(const std::map<Placement, Bytes>& bytes_out, StepRecord& record);

// Collective: every worker's timeline on every worker.
absl::StatusOr<std::vector<WorkerTimeline>> GatherTimelines(Coordinator& coordinator,
                                                            const WorkerTimeline& mine);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_SEAT_STEP_RECORD_H_
