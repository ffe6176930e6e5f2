#include "launch/run/record/compare_step.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "launch/run/seat/step_record.h"

namespace siphon {
namespace {

void AddBusy(const std::vector<WorkerTimeline>& workers, WorkersTime& times) {
  for (const WorkerTimeline& worker : workers) {
    for (const Interval& interval : worker) {
      if (interval.kind != IntervalKind::kBusy) continue;
      times.busy[static_cast<size_t>(interval.action.kind)] += interval.end - interval.begin;
    }
  }
}

}  // namespace

Nanos WorkersTime::Busy() const { return std::accumulate(busy.begin(), busy.end(), Nanos(0)); }

WorkersTime TimeOf(const SimulatedStep& step) {
  WorkersTime times;
  AddBusy(step.workers, times);
  for (const auto& waits : step.exposed_waits) {
    for (size_t cause = 0; cause < waits.size(); ++cause) {
      (static_cast<WaitCause>(cause) == WaitCause::kSwap ? times.copies : times.other) +=
          waits[cause];
    }
  }
  return times;
}

WorkersTime TimeOf(const std::vector<WorkerTimeline>& workers) {
  WorkersTime times;
  AddBusy(workers, times);
  for (const WorkerTimeline& worker : workers) {
    const StepRecord record = SummariseTimeline(worker);
    times.copies += Nanos(record.swap_wait_ns);
    times.other += Nanos(record.wait_ns - record.swap_wait_ns);
  }
  return times;
}

std::vector<KindTime> CompareKinds(const SimulatedStep& predicted,
                                   const std::vector<WorkerTimeline>& measured) {
  const WorkersTime ours = TimeOf(predicted);
  const WorkersTime theirs = TimeOf(measured);
  std::vector<KindTime> kinds;
  const auto add = [&kinds](absl::string_view name, Nanos planned, Nanos taken) {
    if (planned > Nanos(0) || taken > Nanos(0)) {
      kinds.push_back({std::string(name), planned, taken});
    }
  };
  for (int kind = 0; kind < kActionKinds; ++kind) {
    add(ActionKindName(static_cast<ActionKind>(kind)), ours.busy[kind], theirs.busy[kind]);
  }
  add("waits for copies", ours.copies, theirs.copies);
  add("other waits", ours.other, theirs.other);
  return kinds;
}

const KindTime* LargestDifference(const std::vector<KindTime>& kinds) {
  const auto size = [](const KindTime& kind) {
    return std::max(kind.Difference(), Nanos(0) - kind.Difference());
  };
  const auto largest =
      std::max_element(kinds.begin(), kinds.end(),
                       [&](const KindTime& a, const KindTime& b) { return size(a) < size(b); });
  return largest == kinds.end() || size(*largest) == Nanos(0) ? nullptr : &*largest;
}

}  // namespace siphon
