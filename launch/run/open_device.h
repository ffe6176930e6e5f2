#ifndef SIPHON_LAUNCH_RUN_OPEN_DEVICE_H_
#define SIPHON_LAUNCH_RUN_OPEN_DEVICE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/seat/worker_seat.h"
#include "pipeline/torch/device/torch_device.h"
#include "pipeline/transport/nccl_module.h"
#include "planner/ids.h"

namespace siphon {

// The device that a process's worker computes on, and what moves its memory.
struct OpenedDevice {
  std::unique_ptr<TorchDevice> torch;
  WorkerDevice worker;               // on that
  const NcclModule* nccl = nullptr;  // messages to other devices; outlives the process
};

// Opens a worker's, on its thread. Errors: as OpenCudaDevice.
using DeviceOpener =
    std::function<absl::StatusOr<OpenedDevice>(const PreparedJob& prepared, WorkerId me)>;

// By the modules beside the program: the visible CUDA device of the job's plan, with LibTorch's
// kernels. Errors: FailedPrecondition, in one line, where any of it is missing; Internal.
absl::StatusOr<OpenedDevice> OpenCudaDevice(const PreparedJob& prepared, WorkerId me);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_OPEN_DEVICE_H_
