#ifndef SIPHON_TESTS_SWAP_JUMPING_CLOCK_H_
#define SIPHON_TESTS_SWAP_JUMPING_CLOCK_H_

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "planner/units.h"
#include "swap/device/copy_clock.h"

namespace siphon {

// A clock that stands still until somebody waits, and then jumps to where he waits for. With one
// lane at work, copies take exactly their time on paper.
class JumpingClock {
 public:
  Nanos Now() {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void Jump(Nanos until) {
    const std::lock_guard lock(mutex_);
    now_ = std::max(now_, until);
  }

 private:
  std::mutex mutex_;
  Nanos now_{1'000'000};
};

inline CopyClock ClockOf(std::shared_ptr<JumpingClock> clock) {
  return {.now = [clock] { return clock->Now(); },
          .wait_until = [clock](std::unique_lock<std::mutex>&, std::condition_variable&,
                                Nanos until) { clock->Jump(until); }};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_SWAP_JUMPING_CLOCK_H_
