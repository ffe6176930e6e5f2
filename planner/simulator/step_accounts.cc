#include "planner/simulator/step_accounts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace siphon {

StepAccounts::StepAccounts(const SimulationInput& input)
    : workers_(static_cast<int>(input.device_of_worker.size())) {
  const Topology& topology = input.topology;
  // Without a topology, workers are devices of their own.
  size_t devices = topology.devices.size();
  if (devices == 0) {
    for (const DeviceId device : input.device_of_worker) {
      devices = std::max(devices, static_cast<size_t>(device.value) + 1);
    }
  }
  of_device_.assign(devices, kNone);
  for (int worker = 0; worker < workers_; ++worker) {
    of_device_[input.device_of_worker[worker].value] = worker;
  }
  others_.push_back({"the host", topology.host_memory});
  for (size_t device = 0; device < topology.devices.size(); ++device) {
    if (of_device_[device] != kNone) continue;
    of_device_[device] = workers_ + static_cast<int>(others_.size());
    others_.push_back({absl::StrCat("device ", device), topology.devices[device].memory});
  }
  first_drive_ = workers_ + static_cast<int>(others_.size());
  for (size_t drive = 0; drive < topology.drives.size(); ++drive) {
    others_.push_back({absl::StrCat("drive ", drive), topology.drives[drive].capacity});
  }
}

int StepAccounts::OfDevice(DeviceId device) const {
  const auto index = static_cast<size_t>(device.value);
  return index < of_device_.size() ? of_device_[index] : kNone;
}

}  // namespace siphon
