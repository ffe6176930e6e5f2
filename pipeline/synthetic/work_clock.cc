#include "pipeline/synthetic/work_clock.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

namespace siphon {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
// How late the system may wake a sleeper on purpose; 50 us where nobody asks (prctl(2)).
constexpr unsigned long kTimerSlackNanos = 1000;

Nanos MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanos(int64_t{now.tv_sec} * kNanosPerSecond + now.tv_nsec);
}

void SleepUntil(Nanos moment) {
  thread_local const int slack = prctl(PR_SET_TIMERSLACK, kTimerSlackNanos, 0, 0, 0);
  static_cast<void>(slack);  // where it is refused, sleepers wake a little later
  timespec until = {};
  until.tv_sec = moment.value / kNanosPerSecond;
  until.tv_nsec = moment.value % kNanosPerSecond;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

WorkClock MonotonicClock() { return {.now = MonotonicNow, .sleep_until = SleepUntil}; }

}  // namespace siphon
