#ifndef SIPHON_TESTS_SUPPORT_NOISE_H_
#define SIPHON_TESTS_SUPPORT_NOISE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/transport/transport.h"
#include "planner/keyed_hash.h"
#include "planner/units.h"
#include "swap/device/copy_clock.h"

namespace siphon {

// Holds up threads at random moments, so that each seed gives another interleaving of them. No
// sleeps: who is held up yields the processor a few times.
//
// Thread-safety: any thread.
class Noise {
 public:
  explicit Noise(int seed) : seed_(static_cast<uint64_t>(seed)) {}

  // Uniform in [0, bound).
  uint64_t Draw(uint64_t bound) { return KeyedGenerator(seed_ << 32 | draws_++).Next() % bound; }
  // Nothing at all in half of all cases.
  void Pause() {
    const uint64_t turns = Draw(32);
    for (uint64_t turn = 16; turn < turns; ++turn) std::this_thread::yield();
  }

  // A clock that runs by chance alone: at each look by up to 2 us, and where somebody waits to the
  // moment that he waits for, or not yet. The noise outlives it.
  CopyClock Clock() {
    return {.now = [this] { return Nanos(now_ += static_cast<int64_t>(Draw(2000))); },
            .wait_until =
                [this](std::unique_lock<std::mutex>& lock, std::condition_variable&, Nanos until) {
                  lock.unlock();
                  Pause();
                  if (Draw(4) != 0) JumpTo(until.value);
                  lock.lock();
                }};
  }

 private:
  void JumpTo(int64_t moment) {
    int64_t now = now_;
    while (now < moment && !now_.compare_exchange_weak(now, moment)) continue;
  }

  const uint64_t seed_;
  std::atomic<uint64_t> draws_ = 0;
  std::atomic<int64_t> now_ = 1'000'000;
};

// Another transport, whose worker is held up before each call. The noise outlives it.
class NoisyTransport final : public Transport {
 public:
  NoisyTransport(std::unique_ptr<Transport> transport, Noise* noise)
      : transport_(std::move(transport)), noise_(noise) {}

  absl::StatusOr<TransferId> StartSend(const Channel& channel,
                                       std::vector<ConstPart> parts) override {
    noise_->Pause();
    return transport_->StartSend(channel, std::move(parts));
  }
  absl::StatusOr<TransferId> StartReceive(const Channel& channel,
                                          std::vector<MutablePart> parts) override {
    noise_->Pause();
    return transport_->StartReceive(channel, std::move(parts));
  }
  absl::StatusOr<bool> Test(TransferId transfer) override {
    noise_->Pause();
    return transport_->Test(transfer);
  }
  absl::Status Wait(TransferId transfer) override {
    noise_->Pause();
    return transport_->Wait(transfer);
  }

 private:
  std::unique_ptr<Transport> transport_;
  Noise* const noise_;
};

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_NOISE_H_
