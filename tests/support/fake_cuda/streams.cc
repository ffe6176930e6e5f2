#include "tests/support/fake_cuda/streams.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda/links.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/state.h"

namespace siphon::fake_cuda {
namespace {

// Never destroyed: streams that a program has left may still work at its end.
struct Handles {
  std::mutex mutex;
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;  // those that wait have them too
  std::map<int, std::shared_ptr<Stream>> defaults;          // of devices
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  uintptr_t next = 0x1000;
};

Handles& TheHandles() {
  static auto* const handles = new Handles();
  return *handles;
}

void RunCopy(void* to, const void* from, size_t bytes) {
  State& state = TheState();
  if (state.sticky != cudaSuccess) return;
  ++state.copies;
  const bool counts = static_cast<int64_t>(bytes) >= state.fail_least;
  const int64_t number = counts ? ++state.counted : 0;
  const int64_t rate = state.rate;
  const int64_t nanos =
      state.delay_ns + (rate == 0 ? 0
                                  : static_cast<int64_t>(1e9 * static_cast<double>(bytes) /
                                                         static_cast<double>(rate)));
  if (nanos > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(nanos));
  const Place target = AddressBook::The().Find(to, bytes);
  const Place source = AddressBook::The().Find(from, bytes);
  int error = target.error != cudaSuccess ? target.error : source.error;
  if (counts && number == state.fail_copy) error = static_cast<int>(state.fail_code.load());
  if (error != cudaSuccess) {
    // Found while a device works, an error ends all of its context.
    state.sticky = error == cudaErrorInvalidValue ? cudaErrorIllegalAddress : error;
    return;
  }
  std::memmove(target.real, source.real, bytes);
}

}  // namespace

Stream::Stream(int device) : device_(device), thread_([this] { Run(); }) { ++TheState().streams; }

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  --TheState().streams;
}

void Stream::Add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++added_;
  }
  changed_.notify_all();
}

bool Stream::IsDone() {
  const std::lock_guard lock(mutex_);
  return work_.empty();
}

void Stream::Wait() {
  const int64_t through_at = through_at_;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, until = added_] { return done_ >= until; });
  LinkTimes::The().HostSaw(through_at);
}

void Stream::WillBeThroughAt(int64_t time) {
  const std::lock_guard lock(mutex_);
  if (time > through_at_) through_at_ = time;
}

void Stream::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()>& work = work_.front();
    lock.unlock();
    work();
    lock.lock();
    work_.pop_front();
    ++done_;
    changed_.notify_all();
  }
}

int64_t Event::Record(int64_t time) {
  const std::lock_guard lock(mutex_);
  time_ = time;
  return ++recorded_;
}

int64_t Event::time() {
  const std::lock_guard lock(mutex_);
  return time_;
}

void Event::Fire(int64_t record) {
  const std::lock_guard lock(mutex_);
  fired_ = std::max(fired_, record);
  fired_changed_.notify_all();
}

bool Event::HasFired() {
  const std::lock_guard lock(mutex_);
  if (fired_ < recorded_) return false;
  LinkTimes::The().HostSaw(time_);
  return true;
}

int64_t Event::LastRecord() {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void Event::WaitFor(int64_t record) {
  std::unique_lock lock(mutex_);
  fired_changed_.wait(lock, [&] { return fired_ >= record; });
}

Stream* FindStream(cudaStream_t handle) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    std::shared_ptr<Stream>& stream = handles.defaults[CurrentDevice()];
    if (stream == nullptr) stream = std::make_shared<Stream>(CurrentDevice());
    return stream.get();
  }
  const auto found = handles.streams.find(handle);
  return found == handles.streams.end() ? nullptr : found->second.get();
}

std::shared_ptr<Event> FindEvent(cudaEvent_t handle) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.events.find(handle);
  return found == handles.events.end() ? nullptr : found->second;
}

void WaitForStreamsOf(int device) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    Handles& handles = TheHandles();
    const std::lock_guard lock(handles.mutex);
    for (const auto& [handle, stream] : handles.streams) {
      if (stream->device() == device) streams.push_back(stream);
    }
    if (const auto found = handles.defaults.find(device); found != handles.defaults.end()) {
      streams.push_back(found->second);
    }
  }
  for (const std::shared_ptr<Stream>& stream : streams) stream->Wait();
}

cudaError_t StartCopy(void* to, const void* from, size_t bytes, cudaStream_t handle,
                      CopyCall call) {
  State& state = TheState();
  if (call == CopyCall::kAsync && ++state.starts == state.fail_start) return cudaErrorInvalidValue;
  Stream* const stream = FindStream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const Place target = AddressBook::The().Find(to, bytes);
  const Place source = AddressBook::The().Find(from, bytes);
  if (target.error == cudaErrorInvalidValue || source.error == cudaErrorInvalidValue) {
    return cudaErrorInvalidValue;
  }
  if (bytes == 0) return cudaSuccess;
  const auto device_of = [](const Place& place) {
    return place.kind == Place::Kind::kDevice ? place.device : -1;
  };
  stream->WillBeThroughAt(
      LinkTimes::The().Copy(device_of(source), device_of(target), bytes, stream->through_at()));
  const bool pageable =
      target.kind == Place::Kind::kPageable || source.kind == Place::Kind::kPageable;
  if (call == CopyCall::kAsync && pageable) ++state.pageable;
  // Counted until it is through, so that somebody can see how much a stream is given at a time.
  static std::mutex* const counting = new std::mutex();
  static auto* const queued = new std::map<Stream*, int64_t>();
  {
    const std::lock_guard lock(*counting);
    const int64_t now = ++(*queued)[stream];
    state.most_queued = std::max(state.most_queued.load(), now);
  }
  stream->Add([=] {
    RunCopy(to, from, bytes);
    const std::lock_guard lock(*counting);
    --(*queued)[stream];
  });
  // What is not locked goes through a buffer of the driver's, and the call waits for it.
  if (pageable || call == CopyCall::kBlocking) stream->Wait();
  return call == CopyCall::kBlocking ? StandingError() : cudaSuccess;
}

}  // namespace siphon::fake_cuda

using siphon::fake_cuda::CurrentDevice;
using siphon::fake_cuda::Event;
using siphon::fake_cuda::FindEvent;
using siphon::fake_cuda::FindStream;
using siphon::fake_cuda::Finish;
using siphon::fake_cuda::LinkTimes;
using siphon::fake_cuda::StandingError;
using siphon::fake_cuda::Stream;
using siphon::fake_cuda::TheHandles;
using siphon::fake_cuda::TheState;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  FAKE_CUDA_ENTER();
  auto made = std::make_shared<Stream>(CurrentDevice());
  auto& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  *stream = reinterpret_cast<cudaStream_t>(handles.next += 16);
  handles.streams[*stream] = std::move(made);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  std::shared_ptr<Stream> gone;
  {
    auto& handles = TheHandles();
    const std::lock_guard lock(handles.mutex);
    const auto found = handles.streams.find(stream);
    if (found == handles.streams.end()) return Finish(cudaErrorInvalidResourceHandle);
    gone = std::move(found->second);
    handles.streams.erase(found);
  }
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  Stream* const found = FindStream(stream);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  found->Wait();
  return Finish(StandingError());
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  Stream* const found = FindStream(stream);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  return found->IsDone() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FAKE_CUDA_ENTER();
  Stream* const found = FindStream(stream);
  const std::shared_ptr<Event> awaited = FindEvent(event);
  if (found == nullptr || awaited == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  found->WillBeThroughAt(awaited->time());
  found->Add([awaited, record = awaited->LastRecord()] { awaited->WaitFor(record); });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  FAKE_CUDA_ENTER();
  Stream* const found = FindStream(stream);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  found->Add([=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  FAKE_CUDA_ENTER();
  auto& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  *event = reinterpret_cast<cudaEvent_t>(handles.next += 16);
  handles.events[*event] = std::make_shared<Event>((flags & cudaEventDisableTiming) == 0);
  ++TheState().events;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  FAKE_CUDA_ENTER();
  auto& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  if (handles.events.erase(event) == 0) return Finish(cudaErrorInvalidResourceHandle);
  --TheState().events;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  auto& state = TheState();
  if (++state.records == state.fail_record) {
    state.sticky = static_cast<int>(state.fail_code.load());
    return Finish(StandingError());
  }
  Stream* const found = FindStream(stream);
  std::shared_ptr<Event> recorded = FindEvent(event);
  if (found == nullptr || recorded == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  const int64_t time = std::max(found->through_at(), LinkTimes::The().host_time());
  const int64_t record = recorded->Record(time);
  found->Add([recorded = std::move(recorded), record] { recorded->Fire(record); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  FAKE_CUDA_ENTER();
  const std::shared_ptr<Event> asked = FindEvent(event);
  if (asked == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  if (!asked->HasFired()) return cudaErrorNotReady;
  // An error of what came before is there once the event is.
  return Finish(StandingError());
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKE_CUDA_ENTER();
  const std::shared_ptr<Event> awaited = FindEvent(event);
  if (awaited == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  awaited->WaitFor(awaited->LastRecord());
  LinkTimes::The().HostSaw(awaited->time());
  return Finish(StandingError());
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  FAKE_CUDA_ENTER();
  const std::shared_ptr<Event> from = FindEvent(start);
  const std::shared_ptr<Event> to = FindEvent(end);
  if (from == nullptr || to == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  if (!from->has_time() || !to->has_time()) return Finish(cudaErrorInvalidResourceHandle);
  if (!from->HasFired() || !to->HasFired()) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(to->time() - from->time()) * 1e-6);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  FAKE_CUDA_ENTER();
  return Finish(
      siphon::fake_cuda::StartCopy(to, from, bytes, stream, siphon::fake_cuda::CopyCall::kAsync));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  FAKE_CUDA_ENTER();
  return Finish(siphon::fake_cuda::StartCopy(to, from, bytes, nullptr,
                                             siphon::fake_cuda::CopyCall::kBlocking));
}

cudaError_t cudaDeviceSynchronize() {
  FAKE_CUDA_ENTER();
  siphon::fake_cuda::WaitForStreamsOf(CurrentDevice());
  return Finish(StandingError());
}

}  // extern "C"
