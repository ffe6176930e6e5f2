// What a new kind of GPU machine has to answer first, as one table: copy engines, rates of copies
// by one call and by the CUDA backend, how long a small copy waits behind a large one, what locking
// host memory, events and a context cost.
//
//   first_facts MODULE [MIB]     MODULE: siphon_cuda.so; MIB: size of the large copies (1024)
//
// Large copies are compared afterwards. Exit code 1 when something is not as the backend needs it,
// 3 when a goal is missed (all facts are printed all the same), 77 where there is no device.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

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
    table.Print("memory, free", FormatBytes(device.memory) + ", " + FormatBytes(device.free));
  }
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
  Need(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle");
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess);
  table.Print("opening one's own IPC handle", cudaGetErrorName(error));
  static_cast<void>(cudaGetLastError());
  if (error == cudaSuccess) Need(cudaIpcCloseMemHandle(opened), "cudaIpcCloseMemHandle");
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

int Run(const std::string& path, size_t bytes) {
  const absl::StatusOr<const CudaModule*> module = LoadCudaModule(path);
  if (!module.ok() || !(*module)->Devices().ok()) {
    const absl::Status status = module.ok() ? (*module)->Devices().status() : module.status();
    std::fprintf(stderr, "skipped, because of %s\n", std::string(status.message()).c_str());
    return kSkipped;
  }
  FactTable table;
  DeviceFacts(**module, table);
  OwnHandle(table);
  EventCosts(table);
  LargeCopies copies(**module, bytes, table);
  copies.PrintRates();
  copies.PrintSmallBesideLarge();
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
