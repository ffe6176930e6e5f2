#include "swap/device/cuda_nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<NvmlServer> Read(const char* server) {
  setenv("SIPHON_FAKE_NVML", server, 1);
  absl::StatusOr<NvmlServer> read = ReadNvml(SIPHON_FAKE_NVML_LIBRARY);
  unsetenv("SIPHON_FAKE_NVML");
  return read;
}

NvlinkEnd Device(const std::string& bus_id) { return {NvlinkEnd::At::kDevice, bus_id}; }
NvlinkEnd Switch() { return {NvlinkEnd::At::kSwitch, ""}; }

TEST(ReadNvml, CountsWiresBetweenDevices) {
  const auto server = Read(
      "driver=470.1;0000:1b:00.0,GPU-a,7.0,0000:1c:00.0,0000:1c:00.0,off,local;"
      "0000:1c:00.0,GPU-b,7.0,0000:1b:00.0,0000:1b:00.0");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->driver, "470.1");
  ASSERT_EQ(server->devices.size(), 2u);
  EXPECT_EQ(server->devices[0].bus_id, "0000:1b:00.0");
  EXPECT_EQ(server->devices[0].uuid, "GPU-a");
  EXPECT_THAT(server->devices[0].links,
              ElementsAre(Device("0000:1c:00.0"), Device("0000:1c:00.0")));
  EXPECT_THAT(server->devices[1].links,
              ElementsAre(Device("0000:1b:00.0"), Device("0000:1b:00.0")));
}

// A Hopper's links answer by fields; the first ends at a switch that is shown, the others at one
// that a virtual machine hides.
TEST(ReadNvml, KnowsSwitchesShownOrHidden) {
  const auto server =
      Read("driver=580.1;0000:1b:00.0,GPU-a,9.0,switch:0000:05:00.0,hidden,hidden,off");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(server->devices[0].links, ElementsAre(Switch(), Switch(), Switch()));
}

TEST(ReadNvml, TakesServersWithoutLinksOrDevices) {
  auto server = Read("driver=550.1;0000:1b:00.0,GPU-a,8.9");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(server->devices[0].links, IsEmpty());
  server = Read("driver=550.1");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(server->devices, IsEmpty());
}

TEST(ReadNvml, LeavesOutWiresOfWhichItIsToldNothing) {
  const auto server = Read("driver=550.1;0000:1b:00.0,GPU-a,8.0,lost,hidden");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(server->devices[0].links, ElementsAre(Switch()));
}

// A control group shows some devices only, and NVML counts all.
TEST(ReadNvml, LeavesOutDevicesThatItMayNotShow) {
  const auto server = Read(
      "driver=580.1;0000:1b:00.0,forbidden,7.0,0000:1c:00.0;"
      "0000:1c:00.0,GPU-b,7.0,0000:1b:00.0,0000:1d:00.0;0000:1d:00.0,GPU-c,7.0,0000:1c:00.0");
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_EQ(server->devices.size(), 2u);
  EXPECT_EQ(server->devices[0].uuid, "GPU-b");
  EXPECT_EQ(server->devices[1].uuid, "GPU-c");
  EXPECT_THAT(server->devices[1].links, ElementsAre(Device("0000:1c:00.0")));
}

TEST(ReadNvml, SaysWhatItAskedWhenThatFails) {
  unsetenv("SIPHON_FAKE_NVML");
  EXPECT_EQ(ReadNvml(SIPHON_FAKE_NVML_LIBRARY).status().message(),
            "NVML: starting it: Driver Not Loaded");
}

TEST(ReadNvml, RefusesWhatIsNotThereOrNotNvml) {
  const absl::Status missing = ReadNvml("/nowhere/libnvidia-ml.so.1").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("no NVML: /nowhere/libnvidia-ml.so.1: cannot open"));
  EXPECT_EQ(ReadNvml("libc.so.6").status().message(), "NVML: libc.so.6 has no nvmlInit_v2");
}

TEST(CanonicalBusId, IsTheSameForAllWhoWriteOne) {
  EXPECT_EQ(CanonicalBusId("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(CanonicalBusId("0000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(CanonicalBusId("00010000:1B:00.0"), "00010000:1b:00.0");
  EXPECT_EQ(CanonicalBusId("fffffff:ffff:ff"), "fffffff:ffff:ff");
}

}  // namespace
}  // namespace siphon
