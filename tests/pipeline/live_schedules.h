#ifndef SIPHON_TESTS_PIPELINE_LIVE_SCHEDULES_H_
#define SIPHON_TESTS_PIPELINE_LIVE_SCHEDULES_H_

#include <optional>
#include <string>
#include <vector>

#include "pipeline/schedules/build_schedule.h"

namespace siphon {

// What suites over every registry entry run live: all that is synchronous.

// The entries that workers can run. Those that update asynchronously need weight versions.
std::vector<ScheduleEntry> LiveSchedules();
std::vector<std::string> LiveScheduleNames();

// The schedule in this shape; nothing where it does not take the shape, or runs on replicas. One
// that comes from a file gets a file of one stage a worker with idle cells, I and W.
std::optional<Schedule> BuildLive(const ScheduleEntry& entry, const ScheduleShape& shape);

// `name` as a part of a test's name.
std::string TestNameOf(const std::string& name);

}  // namespace siphon

#endif  // SIPHON_TESTS_PIPELINE_LIVE_SCHEDULES_H_
