// Workers under mpirun that share one fake CUDA device, as --share_gpu has it. What comes out has
// the bits of the CPU's workers.

#include "tests/launch/run/device_processes.h"

#include <gmock/gmock.h>

#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr char kOneDevice[] = "SIPHON_FAKE_CUDA_DEVICES=1";
constexpr char kShared[] = "--share_gpu";
constexpr int64_t kLeft = 4 << 20;  // of the device's memory: less than a slab for each

TEST_F(DeviceProcesses, HaveTheCpusBits) {
  const auto expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  for (const char* strategy : {"d2d_swap", "nvme_swap", "optimizer_offload"}) {
    SCOPED_TRACE(strategy);
    JobFile(4, strategy, 93);
    const End end = Run({kOneDevice, kShared});
    ASSERT_EQ(end.exit_code, 0) << end.said;
    EXPECT_TRUE(Trained() == expected) << end.said;
    EXPECT_THAT(end.said, HasSubstr("to fit into memory.capacity"));
    EXPECT_EQ(Count("0 copies of memory that is not locked, 0 freed while others", end.said), 4)
        << end.said;
  }
}

// Planned for a device that has enough, and another process, here this one, has taken it.
TEST_F(DeviceProcesses, FailWhereSomebodyElseHasTheDevicesMemory) {
  JobFile(4, "keep", 100);
  const End alone = Run({kOneDevice, kShared});
  ASSERT_EQ(alone.exit_code, 0) << alone.said;
  FakeCuda::Set("memory", kDeviceMemory);
  const int64_t taken = FakeCuda::TakeAllBut(kLeft, /*device=*/0);
  JobFile(4, "keep", 100);
  const End end = Run({kOneDevice, kShared});
  FakeCuda::GiveBack(taken);
  EXPECT_EQ(end.exit_code, 1) << end.said;
  EXPECT_THAT(
      end.said,
      HasSubstr("memory.capacity counts on it: somebody else has taken memory of the device"));
}

}  // namespace
}  // namespace siphon
