#include "launch/run/step_record.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "planner/status.h"

namespace siphon {

StepRecord SummariseTimeline(const WorkerTimeline& timeline) {
  StepRecord record;
  for (const Interval& interval : timeline) {
    const int64_t duration = (interval.end - interval.begin).value;
    if (interval.kind == IntervalKind::kWait) {
      record.wait_ns += duration;
      continue;
    }
    record.busy_ns += duration;
    if (interval.action.kind == ActionKind::kRecompute) record.recompute_ns += duration;
  }
  return record;
}

absl::StatusOr<std::vector<WorkerTimeline>> GatherTimelines(Coordinator& coordinator,
                                                            const WorkerTimeline& mine) {
  static_assert(std::is_trivially_copyable_v<Interval>);
  const std::string packed(reinterpret_cast<const char*>(mine.data()),
                           mine.size() * sizeof(Interval));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<std::string> all, coordinator.GatherText(packed));
  std::vector<WorkerTimeline> timelines;
  for (const std::string& bytes : all) {
    WorkerTimeline& timeline = timelines.emplace_back(bytes.size() / sizeof(Interval));
    std::memcpy(timeline.data(), bytes.data(), timeline.size() * sizeof(Interval));
  }
  return timelines;
}

}  // namespace siphon
