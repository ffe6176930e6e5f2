#ifndef SIPHON_LAUNCH_RUN_JOB_DEVICES_H_
#define SIPHON_LAUNCH_RUN_JOB_DEVICES_H_

#include <functional>
#include <string>

#include "launch/run/cuda_machine.h"
#include "launch/run/open_device.h"
#include "launch/topology/probe/probe_server.h"

namespace siphon {

// Where jobs on devices find them: CUDA's; tests bring others.
struct JobDevices {
  std::string (*why_none)() = WhyNoCuda;                                   // before a job is read
  std::function<const CudaMachine&()> machine = TheCudaMachine;            // in the job's parent
  DeviceOpener open = OpenCudaDevice;                                      // in each worker
  std::function<absl::StatusOr<ProbeSources>()> probe = ProbeSourcesHere;  // for topology.source
};

}  // namespace siphon

#endif  // SIPHON_LAUNCH_RUN_JOB_DEVICES_H_
