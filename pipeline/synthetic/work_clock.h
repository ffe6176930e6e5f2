#ifndef SIPHON_PIPELINE_SYNTHETIC_WORK_CLOCK_H_
#define SIPHON_PIPELINE_SYNTHETIC_WORK_CLOCK_H_

#include <functional>

#include "planner/units.h"

namespace siphon {

// By which work takes time. Called from the thread that works.
struct WorkClock {
  std::function<Nanos()> now;
  std::function<void(Nanos)> sleep_until;  // returns at once when that is past
};

// The machine's steady clock. Sleeps without using the processor, so that many workers share few
// cores; wakes late by what the system takes (tens of microseconds on an idle machine), never
// early.
WorkClock MonotonicClock();

// Works through pieces of known length, one behind the other. A piece that ends late does not delay
// the one behind it.
//
// Thread-safety: one thread. The clock outlives the work.
class PacedWork {
 public:
  explicit PacedWork(const WorkClock& clock) : clock_(clock), end_(clock.now()) {}

  // Returns when all pieces so far have had their time since the beginning, or since Resume.
  void Take(Nanos duration) {
    end_ += duration;
    if (duration > Nanos(0)) clock_.sleep_until(end_);
  }
  // What has been waited for is there: the next piece begins now.
  void Resume() {
    const Nanos now = clock_.now();
    if (now > end_) end_ = now;
  }
  // Calls `fn`, whose time counts beside the pieces.
  template <typename Fn>
  auto Interrupt(Fn&& fn) {
    const Nanos begin = clock_.now();
    auto result = fn();
    end_ += clock_.now() - begin;
    return result;
  }

 private:
  const WorkClock& clock_;
  Nanos end_;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_SYNTHETIC_WORK_CLOCK_H_
