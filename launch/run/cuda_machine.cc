#include "launch/run/cuda_machine.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launch/plan_job/parking_region.h"
#include "launch/process/ask_child.h"
#include "launch/process/rank_process.h"
#include "launch/run/job/predicted_peaks.h"
#include "launch/run/parking/lending.h"
#include "launch/run/parking/parking_room.h"
#include "pipeline/torch/device/load_torch_cuda.h"
#include "pipeline/transport/nccl_options.h"
#include "planner/round_up.h"
#include "planner/status.h"
#include "swap/device/cuda_module.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {
namespace {

// Starting CUDA takes seconds where a server has many devices; a driver that hangs takes for ever.
constexpr Nanos kPatience{int64_t{120} * 1'000'000'000};
// Of a worker's context, its kernels and libraries on its device, NCCL's among them, and what NCCL
// takes beyond what was planned; a guess until a device has answered.
constexpr Bytes kContext{1 << 30};

absl::Status AskHere(CudaMachine& machine) {
  NumberCudaDevicesByBus();
  const std::string path = FindCudaModule("/proc/self/exe");
  SIPHON_ASSIGN_OR_RETURN(const CudaModule* const module, LoadCudaModule(path));
  SIPHON_ASSIGN_OR_RETURN(const std::vector<CudaDeviceInfo> devices, module->Devices());
  SIPHON_ASSIGN_OR_RETURN(const TorchCudaModule* const torch,
                          LoadTorchCuda(FindTorchCudaModule(path)));
  // Ranks of a user's own mpirun ask all at once: each of them one device.
  int local_rank = 0;
  const char* const said = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (said == nullptr || !absl::SimpleAtoi(said, &local_rank)) local_rank = 0;
  const int asked = local_rank % static_cast<int>(devices.size());
  SIPHON_RETURN_IF_ERROR(torch->Open(asked, TorchKernels::kLoad).status());
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

int SmallestDevice(const CudaMachine& machine) {
  const auto smallest = std::min_element(machine.memory.begin(), machine.memory.end());
  return static_cast<int>(smallest - machine.memory.begin());
}

// What is taken of a device of the plan that has no worker, for tensors that are parked there: an
// arena for each owner, and a context.
struct IdleLender {
  Bytes arenas;
  int owners = 0;
};

std::map<DeviceId, IdleLender> IdleLenders(const PreparedJob& prepared) {
  std::set<DeviceId> computing;
  for (WorkerId worker(0); worker.value < WorkerCount(prepared.plan.training); ++worker.value) {
    computing.insert(DeviceOfWorker(prepared, worker));
  }
  std::map<DeviceId, IdleLender> lent;
  for (const ParkingRegion::Part& part : LayOutRegion(RegionOf(prepared, {}).parking).parts) {
    if (computing.contains(part.lender)) continue;
    lent[part.lender].arenas += RoundUp(part.bytes, kCudaArenaBlock);
    ++lent[part.lender].owners;
  }
  return lent;
}

// Of the plan's devices, workers' and others that lend, those that this machine does not have, and
// other servers neither.
absl::Status CheckDevicesAreThere(const PreparedJob& prepared, int devices) {
  const Topology& topology = prepared.plan_text.topology;
  std::map<int, int> workers_in;  // [server]
  for (WorkerId worker(0); worker.value < WorkerCount(prepared.plan.training); ++worker.value) {
    ++workers_in[ServerOf(topology, DeviceOfWorker(prepared, worker))];
  }
  const int workers = absl::c_max_element(workers_in, [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->second;
  const std::string there = absl::StrCat("there are ", devices, " CUDA devices");
  if (workers > devices) {
    int last = workers - 1;
    for (const DeviceId device : prepared.plan_text.mapping.device_of_worker) {
      last = std::max(last, IndexInServer(topology, device));
    }
    return ConfigError(
        prepared.job, "pipeline.stages",
        absl::StrCat("the plan has ", workers, " workers, up to device ", last, ", and ", there,
                     "; fewer stages fit, --share_gpu puts several workers on a device (for "
                     "tests)"));
  }
  std::set<DeviceId> used;
  const auto use = [&](DeviceId device) { used.insert(DeviceId(IndexInServer(topology, device))); };
  for (WorkerId worker(0); worker.value < WorkerCount(prepared.plan.training); ++worker.value) {
    use(DeviceOfWorker(prepared, worker));
  }
  for (const auto& [lender, taken] : IdleLenders(prepared)) use(lender);
  std::vector<int> missing;
  for (const DeviceId device : used) {
    if (device.value >= devices) missing.push_back(device.value);
  }
  if (missing.empty()) return absl::OkStatus();
  const bool own_plan = !prepared.job.memory.plan.empty();
  return ConfigError(
      prepared.job, own_plan ? "memory.plan" : "topology.name",
      absl::StrCat("the plan computes or parks tensors on device", missing.size() == 1 ? " " : "s ",
                   absl::StrJoin(missing, ", "), ", and ", there,
                   ", from 0 on; topology.source: probe plans with the devices that are here"));
}

// What a job takes of one device.
struct DeviceNeed {
  std::vector<int> workers;
  Bytes at_peaks;  // theirs, all together
  // Beside them, where the plan has a device without a worker; with the owners' contexts.
  Bytes parked;
};

// "device 1", of several servers "device 1 of server 2".
std::string DeviceName(const Topology& topology, int server, int device) {
  const bool one = ServerCount(topology) == 1;
  return absl::StrCat("device ", device, one ? "" : absl::StrCat(" of server ", server));
}

// "workers 1, 3 need 3.00 GiB at their peaks"
std::string ToString(const DeviceNeed& need) {
  const bool one = need.workers.size() == 1;
  const std::string parked =
      absl::StrCat("tensors that are parked there need ", FormatBytes(need.parked));
  if (need.workers.empty()) return parked;
  return absl::StrCat("worker", one ? " " : "s ", absl::StrJoin(need.workers, ", "),
                      one ? " needs " : " need ", FormatBytes(need.at_peaks), " at ",
                      one ? "its peak" : "their peaks",
                      need.parked > Bytes(0) ? absl::StrCat(", ", parked) : "");
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
  const Bytes smallest = machine.memory[static_cast<size_t>(SmallestDevice(machine))];
  const int64_t mebibyte = 1 << 20;
  const int64_t each = smallest.value / sharing - kContext.value;
  return Bytes(std::max<int64_t>(each, mebibyte) / mebibyte * mebibyte);
}

absl::Status WithDevicesMemory(const absl::Status& refusal, const CudaMachine& machine, int workers,
                               DeviceUse use) {
  const int device = SmallestDevice(machine);
  const int sharing = WorkersOfADevice(workers, static_cast<int>(machine.memory.size()), use);
  return absl::Status(
      refusal.code(),
      absl::StrCat(refusal.message(), "\n  memory.capacity is not set: of device ", device, "'s ",
                   FormatBytes(machine.memory[static_cast<size_t>(device)]),
                   sharing > 1 ? absl::StrCat(" each of ", sharing, " workers") : " a worker",
                   " may have ", FormatBytes(CudaCapacity(machine, workers, use)),
                   ", as a context takes ", FormatBytes(kContext),
                   "; more takes a device with more memory"));
}

int VisibleDevice(DeviceId device, int devices, DeviceUse use) {
  return use == DeviceUse::kShared ? device.value % devices : device.value;
}

absl::Status CheckOnCuda(const PreparedJob& prepared, int devices, DeviceUse use) {
  if (use == DeviceUse::kOneEach) SIPHON_RETURN_IF_ERROR(CheckDevicesAreThere(prepared, devices));
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

absl::Status CheckDeviceMemory(const PreparedJob& prepared, const CudaMachine& machine,
                               DeviceUse use) {
  const int devices = static_cast<int>(machine.memory.size());
  SIPHON_ASSIGN_OR_RETURN(const std::vector<Bytes> peaks, PredictedPeaks(prepared));
  const Topology& topology = prepared.plan_text.topology;
  std::map<std::pair<int, int>, DeviceNeed> needs;  // [server, visible device], servers alike
  const auto need_of = [&](DeviceId planned) -> DeviceNeed& {
    const DeviceId device(IndexInServer(topology, planned));
    return needs[{ServerOf(topology, planned), VisibleDevice(device, devices, use)}];
  };
  for (int worker = 0; worker < static_cast<int>(peaks.size()); ++worker) {
    DeviceNeed& need = need_of(DeviceOfWorker(prepared, WorkerId(worker)));
    need.at_peaks += peaks[static_cast<size_t>(worker)];
    need.workers.push_back(worker);
  }
  for (const auto& [lender, taken] : IdleLenders(prepared)) {
    Bytes& parked = need_of(lender).parked;
    parked += taken.arenas;
    // Of a shared device its owners have contexts anyway.
    if (use == DeviceUse::kOneEach) parked += kCudaLenderContext * taken.owners;
  }
  for (const auto& [at, need] : needs) {
    const Bytes memory = machine.memory[static_cast<size_t>(at.second)];
    if (need.at_peaks + need.parked <= memory) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("the job does not fit: ", ToString(need), ", and ",
                     DeviceName(topology, at.first, at.second), " has ", FormatBytes(memory),
                     "\n  memory.capacity allows more than that; without it the job is planned "
                     "with what devices have beside contexts of ",
                     FormatBytes(kContext)));
  }
  return absl::OkStatus();
}

void SetCudaEnvironment(int rank, DeviceUse use) {
  NumberCudaDevicesByBus();
  // The workspace that LibTorch gives cuBLAS for each stream: of a fixed size, by which sums have
  // one order, and as plans count it.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  // Segments of LibTorch's allocator that grow and shrink: tensors that are swapped are freed in
  // another order than they were made, and blocks that cannot be joined would be given back to the
  // device and taken again in the middle of a step, which waits for all that it does. LibTorch
  // looks at the older name first.
  if (std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr) {
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", /*overwrite=*/0);
  }
  if (use == DeviceUse::kShared) ShareDeviceWithOtherRanks(rank);
}

}  // namespace siphon
