#ifndef SIPHON_PIPELINE_SCHEDULES_WARM_UP_SCHEDULE_H_
#define SIPHON_PIPELINE_SCHEDULES_WARM_UP_SCHEDULE_H_

#include <functional>

#include "planner/schedule.h"

namespace siphon {

class ProgramWriter;

// The common form of all schedules with one stage a worker that go backward as early as they can:
// stage s begins with warm_up(s) forwards (at most one for each microbatch), then goes backward and
// forward in turn until nothing is left. `behind_backward` writes what follows each backward.
//
// Requires: one stage a worker; warm_up(s) >= warm_up(s + 1) >= 1, else the workers wait for each
// other.
void WriteWarmUpSchedule(
    Schedule& schedule, const std::function<int(int stage)>& warm_up,
    const std::function<void(ProgramWriter& program, int stage)>& behind_backward = nullptr);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SCHEDULES_WARM_UP_SCHEDULE_H_
