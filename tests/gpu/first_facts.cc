// What a new kind of GPU machine has to answer first, as one table: copy engines, rates of copies
// by one call and by the CUDA backend, how long a small copy waits behind a large one, what locking
// host memory, events and a context cost.
//
//   first_facts MODULE [MIB]     MODULE: siphon_cuda.so; MIB: size of the large copies (1024)
//
// Every copy that is timed is compared afterwards. Exit code 1 when something is not as the backend
// needs it, 77 where there is no device.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/status.h"
#include "planner/units.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {
namespace {

constexpr int kSkipped = 77;

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;               // the median counts
constexpr size_t kSmallCopy = 64 << 10;  // a boundary's activations, the least of them

void Need(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorName(error));
  std::exit(1);
}

template <typename T>
T Need(absl::StatusOr<T> made) {
  SIPHON_CHECK(made.ok(), made.status().message());
  return *std::move(made);
}

void Print(const char* fact, const std::string& value) {
  std::printf("| %-58s | %-28s |\n", fact, value.c_str());
  std::fflush(stdout);
}
void Print(const char* fact, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f %s", value, unit);
  Print(fact, text);
}

double Seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <typename Run>
double Median(const Run& run) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) times.push_back(run());
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

void DeviceFacts(const CudaModule& module) {
  for (const CudaDeviceInfo& device : Need(module.Devices())) {
    Print("device", device.name + " " + device.bus_id);
    Print("compute capability",
          std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor));
    Print("copy engines (asyncEngineCount)", std::to_string(device.copy_engines));
    Print("NUMA node",
          device.numa_node.has_value() ? std::to_string(*device.numa_node) : "not said");
    Print("memory, free", FormatBytes(device.memory) + ", " + FormatBytes(device.free));
  }
  int driver = 0;
  int runtime = 0;
  Need(cudaDriverGetVersion(&driver), "the driver's version");
  Need(cudaRuntimeGetVersion(&runtime), "the runtime's version");
  Print("driver's CUDA, runtime", std::to_string(driver) + ", " + std::to_string(runtime));
}

// The handle of one's own memory: must fail, and harm nothing.
void OwnHandle() {
  void* memory = nullptr;
  Need(cudaMalloc(&memory, 2 << 20), "cudaMalloc");
  cudaIpcMemHandle_t handle;
  Need(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle");
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
  Print("opening one's own IPC handle", cudaGetErrorName(error));
  static_cast<void>(cudaGetLastError());
  if (error == cudaSuccess) Need(cudaIpcCloseMemHandle(opened), "cudaIpcCloseMemHandle");
  Need(cudaFree(memory), "cudaFree");
}

void EventCosts() {
  constexpr int kRecords = 10'000;
  cudaStream_t stream = nullptr;
  Need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  for (const auto& [flags, fact] :
       {std::pair(unsigned{cudaEventDisableTiming}, "event record, no time"),
        std::pair(unsigned{cudaEventDefault}, "event record, with time")}) {
    cudaEvent_t event = nullptr;
    Need(cudaEventCreateWithFlags(&event, flags), "an event");
    const double each = Median([&, made = event] {
      const Clock::time_point begin = Clock::now();
      for (int record = 0; record < kRecords; ++record)
        Need(cudaEventRecord(made, stream), "recording");
      const double time = Seconds(begin);
      Need(cudaStreamSynchronize(stream), "waiting");
      return time / kRecords;
    });
    Print(fact, 1e6 * each, "us");
    Need(cudaEventDestroy(event), "cudaEventDestroy");
  }
  Need(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

// Large memory of both sides, and the ways between them.
class LargeCopies {
 public:
  LargeCopies(const CudaModule& module, size_t bytes) : bytes_(bytes) {
    const Bytes size(static_cast<int64_t>(bytes));
    Clock::time_point begin = Clock::now();
    pool_ = Need(module.MakePinnedPool({.bytes = size * 2 + Bytes(1 << 20), .cap = size * 4}));
    Print("locking host memory, pool (touched by 4 threads)",
          static_cast<double>(size.value) * 2 / Seconds(begin) / 1e9, "GB/s");
    begin = Clock::now();
    void* alloc = nullptr;
    Need(cudaHostAlloc(&alloc, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    Print("locking host memory, cudaHostAlloc", static_cast<double>(bytes) / Seconds(begin) / 1e9,
          "GB/s");
    Need(cudaFreeHost(alloc), "cudaFreeHost");
    for (absl::Span<std::byte>& host : host_) host = Need(pool_->Take(size));
    small_ = Need(pool_->Take(Bytes(kSmallCopy)));
    for (void*& device : device_) Need(cudaMalloc(&device, bytes), "cudaMalloc");
    for (cudaStream_t& stream : streams_) {
      Need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    }
    for (size_t word = 0; word + 8 <= bytes; word += 8) {
      const uint64_t value = word * 0x9E3779B97F4A7C15u;
      std::memcpy(&host_[0][word], &value, sizeof(value));
    }
    backend_ = Need(module.MakeBackend(OptionsForLenders(0, 0, PeerEngines::kOneForAll)));
  }
  ~LargeCopies() {
    backend_ = nullptr;
    for (void* const device : device_) Need(cudaFree(device), "cudaFree");
    for (const cudaStream_t stream : streams_) Need(cudaStreamDestroy(stream), "a stream");
  }

  void Rates() {
    const double in_call = Rate([&] { ByCall(0, device_[0], host_[0].data()); });
    const double out_call = Rate([&] { ByCall(1, host_[1].data(), device_[0]); });
    const double in = Rate([&] { ByBackend(CopyLane::kIn, device_[0], host_[0].data()); });
    const double out = Rate([&] { ByBackend(CopyLane::kOut, host_[1].data(), device_[0]); });
    Print("host to device, one call", in_call / 1e9, "GB/s");
    Print("host to device, backend", in / 1e9, "GB/s");
    Print("  of one call (goal: 95 % or more)", 100 * in / in_call, "%");
    Print("device to host, one call", out_call / 1e9, "GB/s");
    Print("device to host, backend", out / 1e9, "GB/s");
    Print("  of one call (goal: 95 % or more)", 100 * out / out_call, "%");
    const double both = Rate([&] {
      const CopyEvent one = Start(CopyLane::kIn, device_[1], host_[0].data());
      const CopyEvent other = Start(CopyLane::kOut, host_[1].data(), device_[0]);
      SIPHON_CHECK(backend_->Wait(one).ok() && backend_->Wait(other).ok(), "both arrive");
    });
    Print("both directions at once, backend, each", both / 1e9, "GB/s");
    const double local = Rate([&] { ByCall(0, device_[1], device_[0]); });
    Print("within the device, one call", local / 1e9, "GB/s");
    const bool same = std::memcmp(host_[0].data(), host_[1].data(), bytes_ / 8 * 8) == 0;
    Print("what came back", same ? "is as it left" : "IS WRONG");
    SIPHON_CHECK(same, "copies keep every byte");
  }

  // A small copy in, a millisecond after a large one began in the same direction.
  void SmallBehindLarge() {
    const auto wait_of_small = [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const Clock::time_point begin = Clock::now();
      Need(cudaMemcpyAsync(device_[1], small_.data(), kSmallCopy, cudaMemcpyDefault, streams_[1]),
           "a small copy");
      Need(cudaStreamSynchronize(streams_[1]), "a small copy");
      return Seconds(begin);
    };
    Print("64 KiB in, alone", 1e3 * Median(wait_of_small), "ms");
    Print("64 KiB in, behind one call", 1e3 * Median([&] {
                                          Need(cudaMemcpyAsync(device_[0], host_[0].data(), bytes_,
                                                               cudaMemcpyDefault, streams_[0]),
                                               "a large copy");
                                          const double time = wait_of_small();
                                          Need(cudaStreamSynchronize(streams_[0]), "a large copy");
                                          return time;
                                        }),
          "ms");
    Print("64 KiB in, beside the backend (goal: under 2 ms)",
          1e3 * Median([&] {
            const CopyEvent large = Start(CopyLane::kIn, device_[0], host_[0].data());
            const double time = wait_of_small();
            SIPHON_CHECK(backend_->Wait(large).ok(), "the large copy arrives");
            return time;
          }),
          "ms");
  }

 private:
  template <typename Copy>
  double Rate(const Copy& copy) {
    copy();  // the first one makes whatever there is to make
    return static_cast<double>(bytes_) / Median([&] {
             const Clock::time_point begin = Clock::now();
             copy();
             return Seconds(begin);
           });
  }
  void ByCall(int stream, void* to, const void* from) {
    Need(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, streams_[stream]), "a large copy");
    Need(cudaStreamSynchronize(streams_[stream]), "a large copy");
  }
  CopyEvent Start(CopyLane lane, void* to, const void* from) {
    const absl::Span<const std::byte> source(static_cast<const std::byte*>(from), bytes_);
    const absl::Span<std::byte> target(static_cast<std::byte*>(to), bytes_);
    return backend_->StartCopy(lane, {{source, target, CopyLinkId(0)}});
  }
  void ByBackend(CopyLane lane, void* to, const void* from) {
    const absl::Status copied = backend_->Wait(Start(lane, to, from));
    SIPHON_CHECK(copied.ok(), copied.message());
  }

  const size_t bytes_;
  std::unique_ptr<PinnedPool> pool_;
  absl::Span<std::byte> host_[2];
  absl::Span<std::byte> small_;
  void* device_[2] = {};
  cudaStream_t streams_[2] = {};
  std::unique_ptr<DeviceBackend> backend_;
};

int Run(const std::string& path, size_t bytes) {
  const absl::StatusOr<const CudaModule*> module = LoadCudaModule(path);
  if (!module.ok() || !(*module)->Devices().ok()) {
    const absl::Status status = module.ok() ? (*module)->Devices().status() : module.status();
    std::fprintf(stderr, "skipped, because of %s\n", std::string(status.message()).c_str());
    return kSkipped;
  }
  std::printf("| %-58s | %-28s |\n|%s|%s|\n", "fact", "value", std::string(60, '-').c_str(),
              std::string(30, '-').c_str());
  DeviceFacts(**module);
  OwnHandle();
  EventCosts();
  LargeCopies copies(**module, bytes);
  copies.Rates();
  copies.SmallBehindLarge();
  return 0;
}

}  // namespace
}  // namespace siphon

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: first_facts MODULE [MIB]\n");
    return 2;
  }
  const size_t mebibytes = argc == 3 ? static_cast<size_t>(std::atoll(argv[2])) : 1024;
  return siphon::Run(argv[1], mebibytes << 20);
}
