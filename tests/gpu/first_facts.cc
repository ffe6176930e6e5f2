// What a new kind of GPU machine has to answer first, as one table: copy engines, rates of copies
// by one call and by the CUDA backend, how long a small copy waits behind a large one, what small
// tensors among large ones cost, what locking host memory, events and a context cost.
//
//   first_facts MODULE [MIB]     MODULE: siphon_cuda.so; MIB: size of the large copies (1024)
//
// Large copies are compared afterwards. Exit code 1 when something is not as the backend needs it,
// 3 when a goal is missed (all facts are printed all the same), 77 where there is no device.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "planner/status.h"
#include "planner/units.h"
#include "swap/device/load_cuda_module.h"
#include "tests/gpu/fact_table.h"
#include "tests/gpu/large_copies.h"

namespace siphon {
namespace {

constexpr int kSkipped = 77;
constexpr int kGoalMissed = 3;

void DeviceFacts(const CudaModule& module, FactTable& table) {
  for (const CudaDeviceInfo& device : Need(module.Devices())) {
    table.Print("device", device.name + " " + device.bus_id);
    table.Print("compute capability",
                std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor));
    table.Print("copy engines (asyncEngineCount)", std::to_string(device.copy_engines));
    table.Print("NUMA node",
                device.numa_node.has_value() ? std::to_string(*device.numa_node) : "not said");
    Need(cudaSetDevice(device.device), "cudaSetDevice");
    size_t free = 0;
    size_t total = 0;
    Need(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    table.Print("memory, free",
                FormatBytes(device.memory) + ", " + FormatBytes(Bytes(static_cast<int64_t>(free))));
  }
  Need(cudaSetDevice(0), "cudaSetDevice");
  int driver = 0;
  int runtime = 0;
  Need(cudaDriverGetVersion(&driver), "the driver's version");
  Need(cudaRuntimeGetVersion(&runtime), "the runtime's version");
  table.Print("driver's CUDA, runtime", std::to_string(driver) + ", " + std::to_string(runtime));
}

// The handle of one's own memory: must fail, and harm nothing.
void OwnHandle(FactTable& table) {
  void* memory = nullptr;
  Need(cudaMalloc(&memory, 2 << 20), "cudaMalloc");
  cudaIpcMemHandle_t handle;
  const cudaError_t made = cudaIpcGetMemHandle(&handle, memory);
  table.Print("making an IPC handle", cudaGetErrorName(made));  // some containers have none
  if (made == cudaSuccess) {
    void* opened = nullptr;
    const cudaError_t error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
    table.Print("opening one's own IPC handle", cudaGetErrorName(error));
    if (error == cudaSuccess) Need(cudaIpcCloseMemHandle(opened), "cudaIpcCloseMemHandle");
  }
  static_cast<void>(cudaGetLastError());
  Need(cudaFree(memory), "cudaFree");
}

void EventCosts(FactTable& table) {
  constexpr int kRecords = 10'000;
  cudaStream_t stream = nullptr;
  Need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  for (const auto& [flags, fact] :
       {std::pair(unsigned{cudaEventDisableTiming}, "event record, no time"),
        std::pair(unsigned{cudaEventDefault}, "event record, with time")}) {
    cudaEvent_t event = nullptr;
    Need(cudaEventCreateWithFlags(&event, flags), "an event");
    const double each = MedianOf([&, made = event] {
      const FactClock::time_point begin = FactClock::now();
      for (int record = 0; record < kRecords; ++record)
        Need(cudaEventRecord(made, stream), "recording");
      const double time = SecondsSince(begin);
      Need(cudaStreamSynchronize(stream), "waiting");
      return time / kRecords;
    });
    table.Print(fact, 1e6 * each, "us");
    Need(cudaEventDestroy(event), "cudaEventDestroy");
  }
  Need(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

// What swapping a block of a transformer moves at once: activations, and means, deviations and sums
// of attention between them (swap/device/GOTCHAS.md, "Small tensors").
constexpr size_t kLargeTensor = 8 << 20;
constexpr size_t kSmallTensor = 256 << 10;
constexpr size_t kLargeTensors = 7;
constexpr size_t kSmallTensors = 5;
constexpr size_t kGroupBytes = kLargeTensors * kLargeTensor + kSmallTensors * kSmallTensor;
constexpr size_t kAlignment = 256;  // of tensors, as LibTorch's allocator gives them their memory

// As many tensors of one size, and as much together but for the alignment.
std::vector<size_t> EvenGroup() {
  constexpr size_t kTensors = kLargeTensors + kSmallTensors;
  return std::vector<size_t>(kTensors, kGroupBytes / kTensors / kAlignment * kAlignment);
}

// Each small one behind a large one.
std::vector<size_t> MixedGroup() {
  std::vector<size_t> sizes;
  for (size_t tensor = 0; tensor < kLargeTensors; ++tensor) {
    sizes.push_back(kLargeTensor);
    if (tensor < kSmallTensors) sizes.push_back(kSmallTensor);
  }
  return sizes;
}

// Groups of tensors one after the other, by the backend: what one that gathered small tensors first
// could gain is what they lose here.
class GroupsOfTensors {
 public:
  GroupsOfTensors(const CudaModule& module, size_t groups) : groups_(groups) {
    const Bytes size(int64_t{kGroupBytes});
    pool_ = Need(module.MakePinnedPool({.bytes = size * 2 + Bytes(1 << 20), .cap = size * 4}));
    for (std::byte*& host : host_) host = Need(pool_->Take(size)).data();
    void* device = nullptr;
    Need(cudaMalloc(&device, kGroupBytes), "cudaMalloc");
    device_ = static_cast<std::byte*>(device);
    backend_ = Need(module.MakeBackend(OptionsForLenders(0, 0, PeerEngines::kOneForAll)));
    for (size_t word = 0; word < kGroupBytes / 8; ++word) {
      const uint64_t value = word * 0x9E3779B97F4A7C15u;
      std::memcpy(host_[0] + word * 8, &value, sizeof(value));
    }
  }
  ~GroupsOfTensors() {
    backend_ = nullptr;
    Need(cudaFree(device_), "cudaFree");
  }
  GroupsOfTensors(const GroupsOfTensors&) = delete;
  GroupsOfTensors& operator=(const GroupsOfTensors&) = delete;

  void PrintRates(FactTable& table) {
    const std::vector<size_t> even = EvenGroup();
    const std::vector<size_t> mixed = MixedGroup();
    const struct {
      const char* name;
      CopyLane lane;
      std::byte* to;
      const std::byte* from;
    } ways[] = {{"groups to the device, ", CopyLane::kIn, device_, host_[0]},
                {"groups to the host, ", CopyLane::kOut, host_[1], device_}};
    for (const auto& [name, lane, to, from] : ways) {
      const double without = Rate(lane, to, from, even);
      const double with = Rate(lane, to, from, mixed);
      const std::string way = name;
      table.Print(way + "12 tensors of 4.8 MiB each", without / 1e9, "GB/s");
      table.Print(way + "7 tensors of 8 MiB, 5 of 256 KiB", with / 1e9, "GB/s");
      table.Print(way + "5 small of 12, of the rate without", 100 * with / without, "%");
    }
    const bool same = std::memcmp(host_[0], host_[1], kGroupBytes) == 0;
    table.Print("what groups brought back", same ? "is as it left" : "IS WRONG");
    SIPHON_CHECK(same, "copies keep every byte");
  }

 private:
  // Bytes a second.
  double Rate(CopyLane lane, std::byte* to, const std::byte* from,
              const std::vector<size_t>& sizes) {
    std::vector<CopyPart> parts;
    size_t begin = 0;
    for (const size_t size : sizes) {
      parts.push_back({absl::Span<const std::byte>(from + begin, size),
                       absl::Span<std::byte>(to + begin, size), CopyLinkId(0)});
      begin += size;
    }
    const auto copy = [&] {
      const FactClock::time_point start = FactClock::now();
      CopyEvent last;
      for (size_t group = 0; group < groups_; ++group) last = backend_->StartCopy(lane, parts);
      const absl::Status copied = backend_->Wait(last);  // a link takes one after the other
      SIPHON_CHECK(copied.ok(), copied.message());
      return SecondsSince(start);
    };
    copy();  // the first one makes whatever there is to make
    return static_cast<double>(begin * groups_) / MedianOf(copy);
  }

  const size_t groups_;
  std::unique_ptr<PinnedPool> pool_;
  std::byte* host_[2] = {};
  std::byte* device_ = nullptr;
  std::unique_ptr<DeviceBackend> backend_;
};

int Run(const std::string& path, size_t bytes) {
  const absl::StatusOr<const CudaModule*> module = LoadCudaModule(path);
  const absl::Status status = module.ok() ? (*module)->Devices().status() : module.status();
  if (!status.ok()) {
    const bool has_none = module.ok() && absl::IsFailedPrecondition(status);
    std::fprintf(stderr, "%s%s\n", has_none ? "skipped, because of " : "",
                 std::string(status.message()).c_str());
    return has_none ? kSkipped : 1;
  }
  FactTable table;
  DeviceFacts(**module, table);
  OwnHandle(table);
  EventCosts(table);
  LargeCopies copies(**module, bytes, table);
  copies.PrintRates();
  copies.PrintSmallBesideLarge();
  copies.PrintWays();
  GroupsOfTensors(**module, std::max<size_t>(1, bytes / kGroupBytes)).PrintRates(table);
  for (const std::string& goal : table.missed()) {
    std::fprintf(stderr, "goal missed: %s\n", goal.c_str());
  }
  return table.missed().empty() ? 0 : kGoalMissed;
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
