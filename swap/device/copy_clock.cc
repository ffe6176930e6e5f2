#include "swap/device/copy_clock.h"

#include <chrono>

namespace siphon {

CopyClock SteadyCopyClock() {
  using Clock = std::chrono::steady_clock;
  return {
      .now =
          [] { return Nanos(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count()); },
      .wait_until =
          [](std::unique_lock<std::mutex>& lock, std::condition_variable& wake, Nanos until) {
            wake.wait_until(lock, Clock::time_point(std::chrono::nanoseconds(until.value)));
          }};
}

}  // namespace siphon
