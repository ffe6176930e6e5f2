#include "tests/support/fake_nccl/hardware_queue.h"

#include <map>

namespace siphon::fake_nccl {

// Never destroyed: streams' threads may outlive static objects.
HardwareQueue& HardwareQueue::Of(int device) {
  static auto* const mutex = new std::mutex();
  static auto* const queues = new std::map<int, HardwareQueue>();
  const std::lock_guard lock(*mutex);
  return (*queues)[device];
}

int64_t HardwareQueue::Launch() {
  const std::lock_guard lock(mutex_);
  return launched_++;
}

void HardwareQueue::Begin(int64_t launch, const std::function<bool()>& is_given_up) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ == launch || is_given_up(); });
  passed_.insert(launch);
  while (passed_.erase(begun_) > 0) ++begun_;
  changed_.notify_all();
}

void HardwareQueue::Wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void HardwareQueue::Enter() {
  const std::lock_guard lock(mutex_);
  ++work_;
}

void HardwareQueue::Leave() {
  const std::lock_guard lock(mutex_);
  --work_;
  changed_.notify_all();
}

void HardwareQueue::AwaitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_ == 0; });
}

}  // namespace siphon::fake_nccl
