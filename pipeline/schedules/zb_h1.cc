#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/zero_bubble_h.h"

namespace siphon {

// ZB-H1, Qi et al. 2024, arXiv:2401.10241, figure 2: the warm-up of 1F1B. Stage s keeps s weight
// gradients waiting, so that every stage holds P microbatches, as 1F1B's first does.
absl::StatusOr<Schedule> BuildZbH1(const ScheduleShape& shape) {
  return BuildZeroBubbleH(shape, "zb_h1", [&](int stage) {
    return ZeroBubbleDepth{.warm_up = shape.workers - stage, .waiting_weights = stage};
  });
}

}  // namespace siphon
