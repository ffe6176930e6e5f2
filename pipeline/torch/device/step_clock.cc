#include "pipeline/torch/device/step_clock.h"

#include <time.h>

namespace siphon {

int64_t StepClock::NowNs() const {
  timespec now{};
  clock_gettime(threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace siphon
