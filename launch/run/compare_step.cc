#include "launch/run/compare_step.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace siphon {
namespace {

struct Times {
  std::array<Nanos, kActionKinds> busy{};
  Nanos copies;
  Nanos other;
};

void AddBusy(const std::vector<WorkerTimeline>& workers, Times& times) {
  for (const WorkerTimeline& worker : workers) {
    for (const Interval& interval : worker) {
      if (interval.kind != IntervalKind::kBusy) continue;
      times.busy[static_cast<size_t>(interval.action.kind)] += interval.end - interval.begin;
    }
  }
}

Times TimesOf(const SimulatedStep& step) {
  Times times;
  AddBusy(step.workers, times);
  for (const auto& waits : step.exposed_waits) {
    for (size_t cause = 0; cause < waits.size(); ++cause) {
      (static_cast<WaitCause>(cause) == WaitCause::kSwap ? times.copies : times.other) +=
          waits[cause];
    }
  }
  return times;
}

Times TimesOf(const std::vector<WorkerTimeline>& workers) {
  Times times;
  AddBusy(workers, times);
  for (const WorkerTimeline& worker : workers) {
    for (const Interval& interval : worker) {
      if (interval.kind != IntervalKind::kWait) continue;
      (IsMemory(interval.action.kind) ? times.copies : times.other) +=
          interval.end - interval.begin;
    }
  }
  return times;
}

}  // namespace

std::vector<KindTime> CompareKinds(const SimulatedStep& predicted,
                                   const std::vector<WorkerTimeline>& measured) {
  const Times ours = TimesOf(predicted);
  const Times theirs = TimesOf(measured);
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
