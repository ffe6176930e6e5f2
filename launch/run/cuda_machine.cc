#include "launch/run/cuda_machine.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/process/ask_child.h"
#include "launch/process/rank_process.h"
#include "pipeline/torch/load_torch_cuda.h"
#include "pipeline/transport/nccl_options.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {
namespace {

// Starting CUDA takes seconds where a server has many devices; a driver that hangs takes for ever.
constexpr Nanos kPatience{int64_t{120} * 1'000'000'000};
// Of a worker's context, kernels and libraries on its device; a guess until a device has answered.
constexpr Bytes kContext{768 << 20};

absl::Status AskHere(CudaMachine& machine) {
  const std::string path = FindCudaModule("/proc/self/exe");
  SIPHON_ASSIGN_OR_RETURN(const CudaModule* const module, LoadCudaModule(path));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CudaDeviceInfo> devices, module->Devices());
  SIPHON_ASSIGN_OR_RETURN(const TorchCudaModule* const torch,
                          LoadTorchCuda(FindTorchCudaModule(path)));
  SIPHON_RETURN_IF_ERROR(torch->Open(0, TorchKernels::kLoad).status());
  for (const CudaDeviceInfo& device : devices) machine.memory.push_back(device.memory);
  return absl::OkStatus();
}

// The first line is what is wrong, the others are bytes.
std::string AnswerHere() {
  CudaMachine machine;
  const absl::Status asked = AskHere(machine);
  std::string text = absl::StrCat(asked.message(), "\n");
  for (const Bytes memory : machine.memory) absl::StrAppend(&text, memory.value, "\n");
  return text;
}

std::string NoCuda(absl::string_view because) {
  return std::string(NoTorchCuda(because).message());
}

CudaMachine Ask() {
  const std::optional<std::string> text = AskChild(kPatience, AnswerHere);
  if (!text.has_value()) return {.problem = NoCuda("asking for devices gave no answer")};
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  CudaMachine machine{.problem = lines[0]};
  for (size_t line = 1; line + 1 < lines.size(); ++line) {
    int64_t bytes = 0;
    if (absl::SimpleAtoi(lines[line], &bytes)) machine.memory.push_back(Bytes(bytes));
  }
  return machine;
}

int WorkersOfADevice(int workers, int devices, DeviceUse use) {
  return use == DeviceUse::kOneEach ? 1 : (workers + devices - 1) / devices;
}

}  // namespace

const CudaMachine& TheCudaMachine() {
  static const CudaMachine machine = Ask();
  return machine;
}

std::string WhyNoCuda() { return Supervised() ? "" : TheCudaMachine().problem; }

Bytes CudaCapacity(const CudaMachine& machine, int workers, DeviceUse use) {
  SIPHON_CHECK(!machine.memory.empty(), "a machine without a problem has devices");
  const int devices = static_cast<int>(machine.memory.size());
  const int sharing = WorkersOfADevice(workers, devices, use);
  const Bytes smallest = *std::min_element(machine.memory.begin(), machine.memory.end());
  const int64_t mebibyte = 1 << 20;
  const int64_t each = smallest.value / sharing - kContext.value;
  return Bytes(std::max<int64_t>(each, mebibyte) / mebibyte * mebibyte);
}

int VisibleDevice(DeviceId device, int devices, DeviceUse use) {
  return use == DeviceUse::kShared ? device.value % devices : device.value;
}

absl::Status CheckOnCuda(const PreparedJob& prepared, int devices, DeviceUse use) {
  const std::vector<DeviceId>& mapped = prepared.plan_text.mapping.device_of_worker;
  const int workers = WorkerCount(prepared.plan.training);
  int last = workers - 1;
  for (const DeviceId device : mapped) last = std::max(last, device.value);
  if (last >= devices && use == DeviceUse::kOneEach) {
    return ConfigError(
        prepared.job, "pipeline.stages",
        absl::StrCat("the plan has ", workers, " workers, up to device ", last, ", and there are ",
                     devices,
                     " CUDA devices; fewer stages fit, --share_gpu puts several workers "
                     "on a device (for tests)"));
  }
  const std::string& transport = prepared.job.pipeline.transport;
  if (transport != "auto" && transport != "nccl") {
    return ConfigError(prepared.job, "pipeline.transport",
                       absl::StrCat(transport,
                                    " moves memory of the host; between CUDA devices "
                                    "auto and nccl work"));
  }
  if (prepared.throttled.has_value()) {
    return ConfigError(prepared.job, "topology.throttle",
                       "holds CPU workers to a topology's rates; CUDA devices have their own");
  }
  return absl::OkStatus();
}

void SetCudaEnvironment(int rank, DeviceUse use) {
  // Without it cuBLAS may add up in another order each time, and LibTorch refuses to use it where
  // train.deterministic asks for one order.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (use == DeviceUse::kShared) ShareDeviceWithOtherRanks(rank);
}

}  // namespace siphon
