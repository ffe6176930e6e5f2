#include "launch/run/nccl_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr Bytes Mebibytes(int64_t count) { return Bytes(count << 20); }

NcclMemory Nccl(int64_t taken, int64_t free) {
  return {.worker = WorkerId(1),
          .planned = Mebibytes(160),
          .measured = NcclMemory::Measured{Mebibytes(taken), Mebibytes(free)}};
}

// The contexts and communicators of others on the device would look like this worker's.
TEST(NcclMemory, IsThatOfThePlanWhereOthersTakeMemoryOfTheDevice) {
  const NcclMemory nccl{.worker = WorkerId(1), .planned = Mebibytes(160)};
  EXPECT_EQ(BookedOf(nccl), Mebibytes(160));
  EXPECT_EQ(WarningOf(nccl), std::nullopt);
  EXPECT_EQ(CheckRoomBeside(nccl, Mebibytes(1 << 20)), absl::OkStatus());
}

TEST(NcclMemory, IsBookedAsMeasuredWhereThatIsLess) {
  EXPECT_EQ(BookedOf(Nccl(100, 1000)), Mebibytes(100));
  EXPECT_EQ(WarningOf(Nccl(160, 1000)), std::nullopt);
}

// A plan that fills memory.capacity keeps what it counts on.
TEST(NcclMemory, BeyondThePlanIsNotOfTheWorkersCapacity) {
  EXPECT_EQ(BookedOf(Nccl(400, 1000)), Mebibytes(160));
  const auto warning = WarningOf(Nccl(400, 1000));
  ASSERT_TRUE(warning.has_value());
  EXPECT_THAT(*warning, HasSubstr("NCCL has 400 MiB of worker 1's device, and 160 MiB were"));
}

// Of 1,000 MiB the plan has 160 for NCCL: 840 are to come.
TEST(NcclMemory, EndsTheRunOnlyWhereTheDeviceLacksWhatThePlanNeeds) {
  EXPECT_EQ(CheckRoomBeside(Nccl(400, 840), Mebibytes(1000)), absl::OkStatus());
  const absl::Status refused = CheckRoomBeside(Nccl(400, 800), Mebibytes(1000));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "the plan needs 840 MiB more of the memory of worker 1's device, and 800 MiB are left "
            "there: NCCL "
            "has 400 MiB (160 MiB were planned); with a memory.capacity smaller by 40.0 MiB it "
            "would fit");
}

// What NCCL has beyond the plan does not explain it: no fault of the plan.
TEST(NcclMemory, BlamesAnotherProcessForWhatNcclHasNotTaken) {
  EXPECT_TRUE(absl::IsResourceExhausted(CheckRoomBeside(Nccl(400, 600), Mebibytes(1000))));
  for (const NcclMemory& nccl : {Nccl(400, 599), Nccl(160, 800), Nccl(0, 1)}) {
    const absl::Status taken = CheckRoomBeside(nccl, Mebibytes(1000));
    EXPECT_TRUE(absl::IsFailedPrecondition(taken)) << taken;
    EXPECT_THAT(std::string(taken.message()), HasSubstr("left there: the rest is another process"));
    EXPECT_EQ(absl::StrContains(taken.message(), "memory.capacity"),
              nccl.measured->free > Mebibytes(500));
  }
}

}  // namespace
}  // namespace siphon
