#ifndef SIPHON_PIPELINE_SCHEDULES_ZERO_BUBBLE_H_H_
#define SIPHON_PIPELINE_SCHEDULES_ZERO_BUBBLE_H_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/schedule.h"

namespace siphon {

// What the two handcrafted zero-bubble schedules differ in, for one stage.
struct ZeroBubbleDepth {
  int warm_up = 1;          // forwards before the first I
  int waiting_weights = 0;  // weight gradients that are put off until forwards run out
};

// After its warm-up a stage repeats I, W, F; with one stage a worker.
absl::StatusOr<Schedule> BuildZeroBubbleH(const ScheduleShape& shape, absl::string_view name,
                                          const std::function<ZeroBubbleDepth(int stage)>& depth);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_ZERO_BUBBLE_H_H_
