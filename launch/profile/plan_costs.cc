#include "launch/profile/plan_costs.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launch/profile/device_file.h"
#include "planner/status.h"

namespace siphon {
namespace {

// One core of a server with AVX2, float32. ASSUMED: the order of what siphon profile --calibrate
// finds; plans for a machine take its own figures.
constexpr int64_t kCoreFlops = 40'000'000'000;
constexpr BytesPerSecond kCoreCopies{10'000'000'000};
constexpr Nanos kCoreOverhead{5'000};

absl::StatusOr<DeviceSpec> AssumedCores(int64_t threads) {
  SIPHON_ASSIGN_OR_RETURN(const int64_t flops,
                          CheckedProduct(kCoreFlops, threads, "pipeline.threads_per_worker"));
  return CpuDeviceSpec({.name = absl::StrCat("CPU cores as most are, ", threads, " a worker"),
                        .product_flops = flops,
                        .copy_bandwidth = kCoreCopies,
                        .operation_overhead = kCoreOverhead});
}

absl::StatusOr<DeviceSpec> DeviceOfTopology(const JobConfig& job, const Topology& topology) {
  absl::StatusOr<DeviceSpec> device = FindDeviceSpec(topology.device_kind);
  if (device.ok()) return device;
  return ConfigError(job, "topology.name",
                     absl::StrCat(topology.name, " has devices of kind '", topology.device_kind,
                                  "', whose speed is not known; name another one's with --device (",
                                  absl::StrJoin(KnownDeviceSpecs(), ", "),
                                  "), or give a profile (--profile, or pipeline.profile)"));
}

absl::StatusOr<DeviceSpec> DefaultDevice(const JobConfig& job, const Topology* topology) {
  if (topology != nullptr) return DeviceOfTopology(job, *topology);
  if (job.pipeline.backend == "cpu") return AssumedCores(job.pipeline.threads_per_worker);
  return ConfigError(job, "pipeline.backend",
                     absl::StrCat(job.pipeline.backend,
                                  ", but nothing says which devices; write topology.source: probe, "
                                  "which measures this machine's, or topology.name, or give "
                                  "--device (",
                                  absl::StrJoin(KnownDeviceSpecs(), ", "), ") or --profile"));
}

}  // namespace

CostSource PlanCosts::source() const {
  return {.profile = profile.has_value() ? &*profile : nullptr,
          .device = device.has_value() ? &*device : nullptr,
          .profile_path = profile_path};
}

absl::StatusOr<PlanCosts> LoadPlanCosts(const JobConfig& job, const Topology* topology,
                                        const std::string& profile, const std::string& device) {
  PlanCosts costs;
  std::string path = profile;
  if (path.empty() && device.empty()) path = job.pipeline.profile;
  if (!path.empty()) {
    SIPHON_ASSIGN_OR_RETURN(costs.profile, LoadProfile(path));
    costs.profile_path = path;
  } else if (!device.empty()) {
    SIPHON_ASSIGN_OR_RETURN(costs.device, LoadDevice(device));
  } else {
    SIPHON_ASSIGN_OR_RETURN(costs.device, DefaultDevice(job, topology));
  }
  return costs;
}

}  // namespace siphon
