#include "planner/performance/device_spec.h"

#include <gtest/gtest.h>

#include <string>

namespace siphon {
namespace {

TEST(DeviceSpec, GivesTheAchievedShareOfThePeak) {
  const auto v100 = FindDeviceSpec("v100");
  ASSERT_TRUE(v100.ok()) << v100.status();
  EXPECT_EQ(v100->name, "V100");
  EXPECT_EQ(AchievedFlops(*v100, Precision::kFloat32), 15'700'000'000'000 / 100 * 60);
  EXPECT_EQ(AchievedFlops(*v100, Precision::kFloat16), 125'000'000'000'000 / 100 * 30);
  EXPECT_EQ(AchievedBandwidth(*v100), BytesPerSecond(720'000'000'000));
}

TEST(DeviceSpec, ComputesAsInFloat32WithoutUnitsForBFloat16) {
  const DeviceSpec v100 = *FindDeviceSpec("V100");
  EXPECT_EQ(AchievedFlops(v100, Precision::kBFloat16), AchievedFlops(v100, Precision::kFloat32));
  const DeviceSpec card = *FindDeviceSpec("GTX-1080Ti");
  EXPECT_EQ(AchievedFlops(card, Precision::kFloat16), AchievedFlops(card, Precision::kFloat32));
  const DeviceSpec a100 = *FindDeviceSpec("A100");
  EXPECT_EQ(AchievedFlops(a100, Precision::kBFloat16), AchievedFlops(a100, Precision::kFloat16));
}

TEST(DeviceSpec, EveryDeviceComputesMovesAndHolds) {
  for (const std::string& name : KnownDeviceSpecs()) {
    SCOPED_TRACE(name);
    const DeviceSpec device = *FindDeviceSpec(name);
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16}) {
      EXPECT_GT(AchievedFlops(device, precision), 1'000'000'000'000);
    }
    EXPECT_GT(AchievedBandwidth(device), device.host_link);
    EXPECT_GE(device.capacity, Bytes(11'000'000'000));
  }
}

TEST(DeviceSpec, ListsTheKnownDevices) {
  const absl::Status status = FindDeviceSpec("B200").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "unknown device 'B200'; known: GTX-1080Ti, P100, V100, V100-32, A100, A100-80, H100, "
            "H200, B300");
}

TEST(DeviceSpec, TakesACpuByWhatWasMeasuredOnIt) {
  const auto cpu = CpuDeviceSpec({.name = "one core",
                                  .product_flops = 50'000'000'000,
                                  .copy_bandwidth = BytesPerSecond(10'000'000'000),
                                  .operation_overhead = Nanos(2000),
                                  .memory = Bytes(8'000'000'000)});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(AchievedFlops(*cpu, Precision::kBFloat16), 50'000'000'000);
  EXPECT_EQ(AchievedBandwidth(*cpu), BytesPerSecond(10'000'000'000));
  EXPECT_EQ(CpuDeviceSpec({.name = "idle"}).status().message(),
            "calibration of 'idle': 0 operations a second and 0 B/s; both must have been measured "
            "and be 100 a second or more");
}

}  // namespace
}  // namespace siphon
