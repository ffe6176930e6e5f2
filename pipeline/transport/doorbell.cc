#include "pipeline/transport/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>

namespace siphon {
namespace {

// Where the kernel refuses futexes in shared memory, a short nap takes their place.
constexpr long kNapNanoseconds = 100'000;

timespec ToTimespec(std::chrono::microseconds duration) {
  return {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000),
          .tv_nsec = static_cast<long>(duration.count() % 1'000'000) * 1000};
}

}  // namespace

uint32_t PrepareToSleep(Doorbell& bell) {
  const uint32_t rings = std::atomic_ref<uint32_t>(bell.rings).load();
  std::atomic_ref<uint32_t>(bell.sleeping).store(1);
  return rings;
}

void Sleep(Doorbell& bell, uint32_t prepared, std::chrono::microseconds limit) {
  const timespec timeout = ToTimespec(limit);
  // Not FUTEX_PRIVATE: the ringer may be another process.
  const long result = syscall(SYS_futex, &bell.rings, FUTEX_WAIT, prepared, &timeout, nullptr, 0);
  if (result != 0 && errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR) {
    const timespec nap{.tv_sec = 0, .tv_nsec = kNapNanoseconds};
    nanosleep(&nap, nullptr);
  }
  StayAwake(bell);
}

void StayAwake(Doorbell& bell) { std::atomic_ref<uint32_t>(bell.sleeping).store(0); }

void Ring(Doorbell& bell) {
  std::atomic_ref<uint32_t> sleeping(bell.sleeping);
  if (sleeping.load() == 0 || sleeping.exchange(0) == 0) return;
  std::atomic_ref<uint32_t>(bell.rings).fetch_add(1);
  syscall(SYS_futex, &bell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace siphon
