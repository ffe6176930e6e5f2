#ifndef SIPHON_LAUNCH_PROCESS_STOP_SIGNAL_H_
#define SIPHON_LAUNCH_PROCESS_STOP_SIGNAL_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "planner/units.h"

namespace siphon {

// For threads that do something every while until they are asked to stop.
//
// Thread-safety: any thread.
class StopSignal {
 public:
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
  }
  // True when asked to stop before `time` was over.
  bool StoppedWithin(Nanos time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_for(lock, std::chrono::nanoseconds(time.value), [this] { return stopping_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROCESS_STOP_SIGNAL_H_
