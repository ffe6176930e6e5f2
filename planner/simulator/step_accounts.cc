#include "planner/simulator/step_accounts.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/simulator/simulated_step.h"
#include "planner/topology.h"

namespace siphon {

StepAccounts::StepAccounts(const SimulationInput& input)
    : workers_(static_cast<int>(input.device_of_worker.size())),
      servers_(ServerCount(input.topology)) {
  const Topology& topology = input.topology;
  for (int worker = 0; worker < workers_; ++worker) {
    of_device_[input.device_of_worker[worker]] = worker;
    server_of_.push_back(ServerOf(topology, input.device_of_worker[worker]));
  }
  for (int server = 0; server < servers_; ++server) {
    others_.push_back({HostName(topology, server), topology.host_memory});
  }
  for (int device = 0; device < DeviceCount(topology); ++device) {
    const int account = workers_ + static_cast<int>(others_.size());
    if (!of_device_.try_emplace(DeviceId(device), account).second) continue;
    others_.push_back({IdleDeviceName(DeviceId(device)), topology.devices[device].memory});
  }
  first_drive_ = workers_ + static_cast<int>(others_.size());
  for (size_t drive = 0; drive < topology.drives.size(); ++drive) {
    others_.push_back({absl::StrCat("drive ", drive), topology.drives[drive].capacity});
  }
  if (topology.drives.empty()) return;
  for (const DeviceId device : input.device_of_worker) {
    of_drive_of_.push_back(first_drive_ + DriveOf(topology, device));
  }
}

int StepAccounts::OfDevice(DeviceId device) const {
  const auto found = of_device_.find(device);
  return found == of_device_.end() ? kNone : found->second;
}

}  // namespace siphon
