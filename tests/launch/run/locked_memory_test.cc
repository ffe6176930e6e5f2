#include "launch/run/parking/locked_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(LockedAtMost, LeavesTheMachineSomething) {
  EXPECT_EQ(LockedAtMost(Bytes(64 * kGibibyte)), Bytes(56 * kGibibyte));
  EXPECT_EQ(LockedAtMost(Bytes(0)), Bytes(0));
}

class CheckLockedMemoryOf : public ParkingJob {};

// Of all workers together.
TEST_F(CheckLockedMemoryOf, RefusesWhatThePlanTakesBeyondTheMachinesShare) {
  auto prepared = PrepareJob(Job(2), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(CheckLockedMemory(*prepared, Bytes(0)), absl::OkStatus()) << "nothing is on the host";
  prepared->parking.resize(2);
  prepared->parking[0].bytes[{Placement::kHostSwap, DeviceId(0)}] = Bytes(4 * kGibibyte);
  prepared->parking[1].bytes[{Placement::kHostSwap, DeviceId(0)}] = Bytes(kGibibyte);
  prepared->host_steps = {Bytes(kGibibyte), Bytes(kGibibyte)};
  EXPECT_EQ(CheckLockedMemory(*prepared, Bytes(8 * kGibibyte)), absl::OkStatus());
  const absl::Status refused = CheckLockedMemory(*prepared, Bytes(4 * kGibibyte));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "the job does not fit: of the host its plan takes 7.00 GiB (parked 5.00 GiB, for "
            "optimizer steps 2.00 GiB), locked for copies to devices, and of this machine's 4.00 "
            "GiB 3.50 GiB may be\n  --set memory.host_capacity=3584MiB plans with that");
}

}  // namespace
}  // namespace siphon
