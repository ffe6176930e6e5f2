#ifndef SIPHON_LAUNCH_PROFILE_PLAN_COSTS_H_
#define SIPHON_LAUNCH_PROFILE_PLAN_COSTS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launch/config/job_config.h"
#include "launch/profile/plan_with_costs.h"
#include "launch/profile/profile_file.h"
#include "planner/performance/device_spec.h"
#include "planner/topology.h"

namespace siphon {

// What a job's layers cost, by a profile or a device.
struct PlanCosts {
  std::optional<ProfileFile> profile;
  std::string profile_path;
  std::optional<DeviceSpec> device;  // with a profile: none

  // Points into this.
  CostSource source() const;
};

// Where costs come from, best first: `profile`, `device`, the job's pipeline.profile, the devices
// of its topology (none: null), a core as most have it (for a CPU backend). Errors: as LoadProfile
// and LoadDevice; InvalidArgument for devices whose speed is not known.
absl::StatusOr<PlanCosts> LoadPlanCosts(const JobConfig& job, const Topology* topology,
                                        const std::string& profile, const std::string& device);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_PROFILE_PLAN_COSTS_H_
