#include "launch/run/device_node.h"

#include <gtest/gtest.h>

#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

class NodeOfDeviceOf : public ParkingJob {};

TEST_F(NodeOfDeviceOf, IsWhatTheDriverSaysBeforeWhatTheTopologyDoes) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  WorkerDevice device;
  EXPECT_EQ(NodeOfDevice(*prepared, &device, WorkerId(1)), std::nullopt);
  prepared->plan_text.topology.devices.resize(4);
  prepared->plan_text.topology.devices[3].numa = 1;
  prepared->plan_text.mapping.device_of_worker = {DeviceId(0), DeviceId(3)};
  EXPECT_EQ(NodeOfDevice(*prepared, &device, WorkerId(1)), 1);
  device.numa_node = 0;
  EXPECT_EQ(NodeOfDevice(*prepared, &device, WorkerId(1)), 0);
  EXPECT_EQ(NodeOfDevice(*prepared, nullptr, WorkerId(1)), std::nullopt) << "the CPU";
}

}  // namespace
}  // namespace siphon
