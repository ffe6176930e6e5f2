#include "planner/simulator/engine/head_tail_jobs.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <utility>

namespace siphon {

Nanos LeastEnd(std::vector<HeadTailJob> jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const HeadTailJob& a, const HeadTailJob& b) { return a.head < b.head; });
  std::priority_queue<std::pair<Nanos, Nanos>> waiting;  // tail, work left; longest tail on top
  Nanos now;
  Nanos end;
  size_t next = 0;
  while (next < jobs.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, jobs[next].head);
    while (next < jobs.size() && jobs[next].head <= now) {
      waiting.emplace(jobs[next].tail, jobs[next].work);
      ++next;
    }
    auto [tail, left] = waiting.top();
    waiting.pop();
    const Nanos until_next = next < jobs.size() ? jobs[next].head - now : left;
    const Nanos done = std::min(left, until_next);
    now += done;
    left -= done;
    if (left > Nanos(0)) {
      waiting.emplace(tail, left);
    } else {
      end = std::max(end, now + tail);
    }
  }
  return end;
}

}  // namespace siphon
