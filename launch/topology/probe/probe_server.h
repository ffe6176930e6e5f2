#ifndef SIPHON_LAUNCH_TOPOLOGY_PROBE_SERVER_H_
#define SIPHON_LAUNCH_TOPOLOGY_PROBE_SERVER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/topology/discovered_server.h"
#include "launch/topology/probe/calibrate_links.h"
#include "swap/device/cuda_module.h"
#include "swap/device/cuda_nvml.h"

namespace siphon {

// Where a probe gets what it says.
struct ProbeSources {
  const CudaModule* module = nullptr;
  std::function<absl::StatusOr<NvmlServer>()> nvml = [] { return ReadNvml(); };
  std::string sysfs = "/sys";
  Bytes host_memory;      // 0: not known
  std::string cache;      // folder that measurements are kept in; empty: nowhere
  bool is_fresh = false;  // measure again, whatever is kept
  bool measures = true;   // else only what is kept counts
  // Others than the usual: what is measured with them is not kept, and nothing kept is taken.
  std::optional<CalibrationSizes> sizes;
};

struct ProbedServer {
  DiscoveredTopology discovered;
  std::string yaml;  // a topology file of it
  std::string file;  // that is kept; empty: none is
};

// This machine's devices, links and their measured rates. What was measured is kept under the
// devices' names and the driver's version, and read from there the next time, if copies were of the
// usual sizes; without NVML the driver's version is not known, and nothing is kept.
// Errors: FailedPrecondition, in one line, without a driver or device, or where nothing is kept
// and nothing may be measured; Internal, of the driver.
absl::StatusOr<ProbedServer> ProbeServer(const ProbeSources& sources);

// Of this machine: the CUDA module beside the program, /sys, and $XDG_CACHE_HOME/siphon or
// $HOME/.cache/siphon. Errors: FailedPrecondition, in one line, without the module.
absl::StatusOr<ProbeSources> ProbeSourcesHere();
// With the CUDA module that is there.
absl::StatusOr<ProbeSources> ProbeSourcesWith(const std::string& cuda_module);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_TOPOLOGY_PROBE_SERVER_H_
