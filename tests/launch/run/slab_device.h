#ifndef SIPHON_TESTS_LAUNCH_RUN_SLAB_DEVICE_H_
#define SIPHON_TESTS_LAUNCH_RUN_SLAB_DEVICE_H_

#include <string>

#include "launch/run/job_devices.h"

namespace siphon {

// Devices for jobs in processes that have the fake CUDA runtime and the fake NCCL: all is the
// program's own, but what LibTorch computes. That is on a device beside the CPU
// (tests/pipeline/torch/other_device.h), whose tensors are in memory of the fake CUDA device that
// the job's plan gives to the worker, in slabs that each process takes as it needs them, as long as
// the device has room. The host can touch none of that, and NCCL nothing else.
//
// `cuda_module`: of the build.
JobDevices SlabDevices(const std::string& cuda_module);

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_SLAB_DEVICE_H_
