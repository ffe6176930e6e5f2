#ifndef SIPHON_TESTS_SUPPORT_FAKE_NCCL_HARDWARE_QUEUE_H_
#define SIPHON_TESTS_SUPPORT_FAKE_NCCL_HARDWARE_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

namespace siphon::fake_nccl {

// The one queue through which a device gets the work of all its streams, when it has only one: what
// was launched begins once all that was launched before it has begun. So work that waits for the
// work before it on its own stream holds up other streams too.
//
// Thread-safety: any thread.
class HardwareQueue {
 public:
  static HardwareQueue& Of(int device);

  // In the order of launches.
  int64_t Launch();
  // On the stream's thread: begins the launch in its turn, or at once when it is given up.
  void Begin(int64_t launch, const std::function<bool()>& is_given_up);
  // Somebody has been given up.
  void Wake();

  // Of work, however the device gets it: from when it is put onto a stream until it has ended.
  void Enter();
  void Leave();
  // Until no work is there.
  void AwaitIdle();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t launched_ = 0;
  int64_t begun_ = 0;  // all before that
  int64_t work_ = 0;
  std::set<int64_t> passed_;  // begun, or given up, behind it
};

}  // namespace siphon::fake_nccl

#endif  // SIPHON_TESTS_SUPPORT_FAKE_NCCL_HARDWARE_QUEUE_H_
