#include "launch/run/open_device.h"

#include <string>
#include <utility>

#include "launch/run/cuda_machine.h"
#include "launch/run/parking/lending.h"
#include "pipeline/torch/device/load_torch_cuda.h"
#include "pipeline/transport/load_nccl_module.h"
#include "planner/status.h"
#include "swap/device/load_cuda_module.h"

namespace siphon {

absl::StatusOr<OpenedDevice> OpenCudaDevice(const PreparedJob& prepared, WorkerId me) {
  OpenedDevice opened;
  const std::string path = FindCudaModule("/proc/self/exe");
  SIPHON_ASSIGN_OR_RETURN(opened.worker.cuda, LoadCudaModule(path));
  SIPHON_ASSIGN_OR_RETURN(const TorchCudaModule* const torch,
                          LoadTorchCuda(FindTorchCudaModule(path)));
  SIPHON_ASSIGN_OR_RETURN(const int devices, torch->Devices());
  const DeviceUse use = prepared.share_gpu ? DeviceUse::kShared : DeviceUse::kOneEach;
  opened.worker.index_of = [devices, use,
                            &topology = prepared.plan_text.topology](DeviceId device) {
    return VisibleDevice(DeviceId(IndexInServer(topology, device)), devices, use);
  };
  opened.worker.visible = devices;
  const int mine = opened.worker.index_of(DeviceOfWorker(prepared, me));
  SIPHON_ASSIGN_OR_RETURN(opened.torch, torch->Open(mine, TorchKernels::kLoad));
  opened.worker.torch = opened.torch.get();
  opened.worker.numa_node = opened.worker.cuda->NumaNode(mine);
  SIPHON_ASSIGN_OR_RETURN(opened.nccl, LoadNcclModule(path));
  return opened;
}

}  // namespace siphon
