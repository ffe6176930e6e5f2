#ifndef SIPHON_LAUNCH_RUN_CUDA_MACHINE_H_
#define SIPHON_LAUNCH_RUN_CUDA_MACHINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launch/run/job/prepare_job.h"
#include "planner/ids.h"
#include "planner/units.h"

namespace siphon {

// What this machine has for jobs on CUDA devices.
struct CudaMachine {
  std::string problem;        // why there are none, in one line that names what is left; else empty
  std::vector<Bytes> memory;  // [visible device]
};

// Loads the CUDA modules and LibTorch's kernels and asks the driver: only where a job wants to. All
// of it in a process of its own that ends, so that this one has no context on any device: a context
// takes some of it, and the parent of a job computes nothing. The first answer stays.
const CudaMachine& TheCudaMachine();

// Why no job runs on CUDA devices here; empty: it does. A worker's parent has asked.
std::string WhyNoCuda();

// Several workers on one device: for tests (--share_gpu).
enum class DeviceUse { kOneEach, kShared };

// What a worker may have of its device where the job does not say: all but what contexts take, and
// of a shared device its part.
Bytes CudaCapacity(const CudaMachine& machine, int workers, DeviceUse use);

// A refusal of a job that was planned with CudaCapacity, with what that is made of.
absl::Status WithDevicesMemory(const absl::Status& refusal, const CudaMachine& machine, int workers,
                               DeviceUse use);

// The visible device that a device of the plan is.
int VisibleDevice(DeviceId device, int devices, DeviceUse use);

// Whether the job's plan can run on these devices: one for each worker and each lender without one,
// or all shared; no message that goes through the host's memory. Errors: InvalidArgument.
absl::Status CheckOnCuda(const PreparedJob& prepared, int devices, DeviceUse use);

// Whether each device has what the plan's workers need there, whatever memory.capacity allows them,
// and what it parks there beside them where it takes the device for one without a worker.
// Errors: ResourceExhausted with the device, what is needed and there, and what would fit.
absl::Status CheckDeviceMemory(const PreparedJob& prepared, const CudaMachine& machine,
                               DeviceUse use);

// The environment of LibTorch, cuBLAS and NCCL in a worker; what the user has set of the first two
// stays. Before the process has other threads, and has loaded LibTorch for CUDA.
void SetCudaEnvironment(int rank, DeviceUse use);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_CUDA_MACHINE_H_
