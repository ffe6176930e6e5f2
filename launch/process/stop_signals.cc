#include "launch/process/stop_signals.h"

#include <cstdint>
#include <ctime>

#include <atomic>

namespace siphon {
namespace {

constexpr int64_t kSameInterruptNs = 20'000'000;

std::atomic<int> interrupt_count{0};
std::atomic<int> request_count{0};
std::atomic<int64_t> last_interrupt_ns{0};

void CountInterrupt(int) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  if (now_ns - last_interrupt_ns.exchange(now_ns) > kSameInterruptNs) interrupt_count.fetch_add(1);
}

void CountRequest(int) { request_count.fetch_add(1); }

// Who asks to quit does not want to wait for the step, as with a second interrupt.
void CountTwoInterrupts(int) { interrupt_count.fetch_add(2); }

}  // namespace

StopSignals::StopSignals() {
  interrupt_count = 0;
  request_count = 0;
  last_interrupt_ns = -kSameInterruptNs;
  const auto handle = [&](int signal, void (*handler)(int)) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) return;
    struct sigaction action = {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
    before_.emplace_back(signal, before);
  };
  handle(SIGINT, CountInterrupt);
  handle(SIGTERM, CountRequest);
  handle(SIGUSR1, CountRequest);
  handle(SIGUSR2, CountRequest);
  handle(SIGHUP, CountRequest);
  handle(SIGQUIT, CountTwoInterrupts);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);  // writing says so itself; workers have it from here
}

StopSignals::~StopSignals() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

int StopSignals::interrupts() const { return interrupt_count; }
int StopSignals::requests() const { return request_count; }

}  // namespace siphon
