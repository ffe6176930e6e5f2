#ifndef SIPHON_SWAP_DEVICE_COPY_CLOCK_H_
#define SIPHON_SWAP_DEVICE_COPY_CLOCK_H_

#include <condition_variable>
#include <functional>
#include <mutex>

#include "planner/units.h"

namespace siphon {

// The time by which links are held to their rates, so that tests can have one of their own. Both
// are called by several threads.
struct CopyClock {
  std::function<Nanos()> now;
  // Gives the lock back while it waits; returns at `until`, or earlier when notified, or for no
  // reason.
  std::function<void(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                     Nanos until)>
      wait_until;
};

// std::chrono::steady_clock.
CopyClock SteadyCopyClock();

}  // namespace siphon

#endif  // SIPHON_SWAP_DEVICE_COPY_CLOCK_H_
