#include "pipeline/schedules/builders.h"
#include "pipeline/schedules/zero_bubble_h.h"

namespace siphon {

// ZB-H2, Qi et al. 2024, arXiv:2401.10241, figure 3: so many forwards in advance that no stage
// waits for its first backward; every stage holds 2 P - 1 microbatches. Without the paper's
// optimizer that checks the step afterwards, the next step begins behind a barrier and the bubble
// is ZB-H1's.
absl::StatusOr<Schedule> BuildZbH2(const ScheduleShape& shape) {
  return BuildZeroBubbleH(shape, "zb_h2", [&](int stage) {
    return ZeroBubbleDepth{.warm_up = 2 * (shape.workers - stage) - 1,
                           .waiting_weights = 2 * stage};
  });
}

}  // namespace siphon
