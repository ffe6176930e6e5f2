// What a device did for this process, in a file: copies and kernels with their engines and times,
// as CUPTI records them.
//
// A shared object that the driver loads where CUDA_INJECTION64_PATH names it, into any program that
// uses CUDA, before its first call; nothing of Siphon knows it. SIPHON_ACTIVITY_FOLDER: where the
// file <process>.activity comes, one LineOf() a line. libcupti is the process's own or that of the
// system.
//
// One such recorder in a process: another profiler would take the records.

#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "tests/gpu/activity/device_activity.h"

namespace siphon {
namespace {

#if CUPTI_API_VERSION >= 130000
using CopyRecord = CUpti_ActivityMemcpy6;
using KernelRecord = CUpti_ActivityKernel10;
constexpr char kLibrary[] = "libcupti.so.13";
#else
using CopyRecord = CUpti_ActivityMemcpy5;
using KernelRecord = CUpti_ActivityKernel9;
constexpr char kLibrary[] = "libcupti.so.12";
#endif
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;

constexpr size_t kBufferBytes = 4 << 20;
constexpr uint32_t kFlushMillis = 500;  // who is killed loses what came later

using Kind = DeviceActivity::Kind;
using Engine = DeviceActivity::Engine;

Kind KindOf(uint8_t copy) {
  switch (copy) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return Kind::kToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return Kind::kToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return Kind::kWithinDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return Kind::kToPeer;
    default:
      return Kind::kOtherCopy;
  }
}

Engine EngineOf(CUpti_ChannelType channel) {
  if (channel == CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY) return Engine::kCopy;
  return channel == CUPTI_CHANNEL_TYPE_COMPUTE ? Engine::kCompute : Engine::kOther;
}

template <typename Record>
DeviceActivity ActivityOf(const Record& record, Kind kind, uint64_t bytes) {
  return {.kind = kind,
          .engine = EngineOf(record.channelType),
          .device = static_cast<int>(record.deviceId),
          .channel = static_cast<int>(record.channelID),
          .stream = static_cast<int>(record.streamId),
          .bytes = Bytes(static_cast<int64_t>(bytes)),
          .start = Nanos(static_cast<int64_t>(record.start)),
          .end = Nanos(static_cast<int64_t>(record.end))};
}

// Thread-safety: CUPTI's thread brings buffers, others flush; the mutex guards the file.
class Recorder {
 public:
  static Recorder& The() {
    static auto* const recorder = new Recorder();
    return *recorder;
  }

  // False: with a reason on standard error.
  bool Start() {
    const char* const folder = std::getenv("SIPHON_ACTIVITY_FOLDER");
    if (folder == nullptr) return Refuse("SIPHON_ACTIVITY_FOLDER names no folder");
    void* const cupti = dlopen(kLibrary, RTLD_NOW);
    if (cupti == nullptr) return Refuse(dlerror());
    const auto find = [cupti](auto*& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(cupti, name));
      return function != nullptr;
    };
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityFlushPeriod) flush_period = nullptr;
    decltype(&cuptiGetResultString) explain = nullptr;
    if (!find(register_callbacks, "cuptiActivityRegisterCallbacks") ||
        !find(enable, "cuptiActivityEnable") || !find(flush_period, "cuptiActivityFlushPeriod") ||
        !find(explain, "cuptiGetResultString") || !find(flush_, "cuptiActivityFlushAll") ||
        !find(next_, "cuptiActivityGetNextRecord")) {
      return Refuse(absl::StrCat(kLibrary, " lacks a function"));
    }
    const std::string path = absl::StrCat(folder, "/", getpid(), ".activity");
    std::FILE* const file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return Refuse(absl::StrCat(path, " cannot be written"));
    CUptiResult result = register_callbacks(&Recorder::GiveBuffer, &Recorder::TakeBuffer);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}) {
      if (result == CUPTI_SUCCESS) result = enable(kind);
    }
    if (result != CUPTI_SUCCESS) {
      const char* why = nullptr;
      if (explain(result, &why) != CUPTI_SUCCESS) why = "an unknown error";
      std::fclose(file);
      return Refuse(absl::StrCat(kLibrary, ": ", why));
    }
    file_ = file;
    flush_period(kFlushMillis);
    std::atexit([] { The().Flush(); });
    return true;
  }

  // All that is complete, into the file.
  void Flush() {
    if (file_ == nullptr) return;
    flush_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(mutex_);
    std::fflush(file_);
  }

 private:
  static bool Refuse(const std::string& why) {
    std::fprintf(stderr, "siphon: no records of the device: %s\n", why.c_str());
    return false;
  }
  static void CUPTIAPI GiveBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *most_records = 0;  // as many as fit
  }
  static void CUPTIAPI TakeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t filled) {
    The().Write(buffer, filled);
    std::free(buffer);
  }
  void Write(uint8_t* buffer, size_t filled) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (filled > 0 && next_(buffer, filled, &record) == CUPTI_SUCCESS) {
      switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
          const auto& copy = *reinterpret_cast<CopyRecord*>(record);
          Write(ActivityOf(copy, KindOf(copy.copyKind), copy.bytes));
          break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY2: {
          const auto& copy = *reinterpret_cast<PeerCopyRecord*>(record);
          Write(ActivityOf(copy, Kind::kToPeer, copy.bytes));
          break;
        }
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
          Write(ActivityOf(*reinterpret_cast<KernelRecord*>(record), Kind::kKernel, 0));
          break;
        default:
          break;
      }
    }
  }
  // What has not ended, or has no times, is left out.
  void Write(const DeviceActivity& activity) {
    if (activity.start == Nanos(0) || activity.end < activity.start) return;
    std::fputs((LineOf(activity) + "\n").c_str(), file_);
  }

  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  decltype(&cuptiActivityFlushAll) flush_ = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_ = nullptr;
};

}  // namespace
}  // namespace siphon

// What the driver calls; 0: this recorder does nothing, and the program goes on.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return siphon::Recorder::The().Start() ? 1 : 0;
}
// For tests, whose process goes on.
extern "C" __attribute__((visibility("default"))) void siphon_activity_flush() {
  siphon::Recorder::The().Flush();
}
