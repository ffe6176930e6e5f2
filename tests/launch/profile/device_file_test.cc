#include "launch/profile/device_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace siphon {
namespace {

CpuCalibration Measured() {
  return {.name = "AMD EPYC, 1 thread",
          .product_flops = 71'234'567'890,
          .copy_bandwidth = BytesPerSecond(11'000'000'001),
          .operation_overhead = Nanos(812),
          .memory = Bytes(int64_t{24} << 30)};
}

constexpr absl::string_view kMeasured =
    R"(# What one worker of this machine achieves: float32 matrix products, copies of large blocks (bytes
# read and written), and the time that one small operation takes.
name: "AMD EPYC, 1 thread"
product_flops_per_second: 71234567890
copy_bytes_per_second: 11000000001
operation_overhead: 812ns
memory: 24GiB
)";

TEST(DeviceFile, IsYamlToTheLastDigit) {
  EXPECT_EQ(WriteCalibration(Measured()), kMeasured);
  const auto read = ParseCalibration(kMeasured, "cpu.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Measured());
}

TEST(DeviceFile, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(std::string(ParseCalibration("name: a\nflops: 1\n", "cpu.yaml").status().message()),
              testing::StartsWith("cpu.yaml:2:1: unknown key 'flops'"));
  EXPECT_THAT(std::string(ParseCalibration("name: a\n", "cpu.yaml").status().message()),
              testing::HasSubstr("a device has no 'product_flops_per_second'"));
  EXPECT_EQ(ParseCalibration("name: a\nproduct_flops_per_second: 99\ncopy_bytes_per_second: 100\n",
                             "cpu.yaml")
                .status()
                .message(),
            "cpu.yaml:2:27: product_flops_per_second: is 99; must have been measured and be at "
            "least 100");
}

TEST(LoadDevice, TakesADeviceOfTheTableOrAFile) {
  const auto known = LoadDevice("a100");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->name, "A100");
  std::string pattern = (std::filesystem::temp_directory_path() / "siphon-device-XXXXXX");
  const std::string directory = mkdtemp(pattern.data());
  const std::string path = directory + "/cpu.yaml";
  std::ofstream(path) << kMeasured;
  const auto measured = LoadDevice(path);
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->name, "AMD EPYC, 1 thread");
  EXPECT_EQ(AchievedFlops(*measured, Precision::kFloat32), 71'234'567'800);
  EXPECT_EQ(measured->launch_overhead, Nanos(812));
}

TEST(LoadDevice, ListsTheDevicesWhenItFindsNone) {
  const auto device = LoadDevice("/no/such/device.yaml");
  EXPECT_EQ(device.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(device.status().message()),
      testing::StartsWith(
          "--device: '/no/such/device.yaml' is neither a known device (GTX-1080Ti, P100, V100,"));
}

}  // namespace
}  // namespace siphon
