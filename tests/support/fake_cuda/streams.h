#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUDA_STREAMS_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUDA_STREAMS_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace siphon::fake_cuda {

// Work in order, by a thread.
class Stream {
 public:
  explicit Stream(int device);
  ~Stream();  // once all is done
  int device() const { return device_; }
  void Add(std::function<void()> work);
  bool IsDone();
  // For what it has been given until now.
  void Wait();
  // When what it has been given until now is through, in the time of LinkTimes.
  int64_t through_at() const { return through_at_; }
  void WillBeThroughAt(int64_t time);

 private:
  void Run();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // the first one is being done
  int64_t added_ = 0;
  int64_t done_ = 0;
  bool stop_ = false;
  std::atomic<int64_t> through_at_ = 0;
  std::thread thread_;
};

// Recorded again and again: each record has a number.
class Event {
 public:
  explicit Event(bool has_time) : has_time_(has_time) {}
  bool has_time() const { return has_time_; }
  // `time`: when it fires, in the time of LinkTimes.
  int64_t Record(int64_t time);
  int64_t time();  // of the last record
  void Fire(int64_t record);
  bool HasFired();
  int64_t LastRecord();
  void WaitFor(int64_t record);

 private:
  std::mutex mutex_;
  std::condition_variable fired_changed_;
  const bool has_time_;
  int64_t recorded_ = 0;
  int64_t fired_ = 0;
  int64_t time_ = 0;
};

// The stream of a handle: null, legacy and per-thread handles are the device's default stream,
// which here is one more stream beside the others. Null for what is no stream.
Stream* FindStream(cudaStream_t handle);
std::shared_ptr<Event> FindEvent(cudaEvent_t handle);
// Until all is done that the streams of a device have been given until now.
void WaitForStreamsOf(int device);

enum class CopyCall { kAsync, kBlocking };
cudaError_t StartCopy(void* to, const void* from, size_t bytes, cudaStream_t stream, CopyCall call);

}  // namespace siphon::fake_cuda

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUDA_STREAMS_H_
