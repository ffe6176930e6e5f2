#include "launch/run/device_node.h"

#include <vector>

#include "launch/run/lending.h"

namespace siphon {

std::optional<int> NodeOfDevice(const PreparedJob& prepared, const WorkerDevice* device,
                                WorkerId me) {
  if (device == nullptr) return std::nullopt;
  if (device->numa_node.has_value()) return device->numa_node;
  const std::vector<TopologyDevice>& devices = prepared.plan_text.topology.devices;
  if (devices.empty()) return std::nullopt;
  return devices[static_cast<size_t>(DeviceOfWorker(prepared, me).value)].numa;
}

}  // namespace siphon
