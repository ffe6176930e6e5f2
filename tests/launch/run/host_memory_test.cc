#include "launch/run/parking/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace siphon {
namespace {

using testing::HasSubstr;

TEST(HostMapping, IsZeroAndGoesWithItsOwner) {
  auto made = HostMapping::Make(Bytes(100'000));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->bytes().size(), 100'000u);
  EXPECT_TRUE(std::all_of(made->bytes().begin(), made->bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  std::memset(made->bytes().data(), 7, made->bytes().size());
  HostMapping moved = *std::move(made);
  EXPECT_EQ(moved.bytes()[99'999], std::byte{7});
  EXPECT_TRUE(made->bytes().empty());
  moved = HostMapping();
  EXPECT_TRUE(moved.bytes().empty());
  EXPECT_TRUE(HostMapping::Make(Bytes(0))->bytes().empty());
}

TEST(HostMapping, ThatTheMachineDoesNotGiveIsRefused) {
  MemoryLedger books(Bytes(0));
  const auto made = HostMapping::Make(Bytes(int64_t{1} << 60), &books, kParked);
  EXPECT_TRUE(absl::IsResourceExhausted(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("are not to be had"));
  EXPECT_EQ(books.used(), Bytes(0));
}

TEST(HostMapping, IsOnTheBooksUntilItsOwnerGoes) {
  MemoryLedger books(Bytes(10'000));
  {
    auto parked = HostMapping::Make(Bytes(6000), &books, kParked);
    ASSERT_TRUE(parked.ok()) << parked.status();
    parked->bytes()[5999] = std::byte{9};
    ASSERT_TRUE(parked->Grow(Bytes(8000)).ok());
    EXPECT_EQ(parked->bytes()[5999], std::byte{9});
    EXPECT_EQ(parked->bytes()[7999], std::byte{0});
    EXPECT_EQ(books.UsedByKind()[kParked], Bytes(8000));
    const absl::Status refused = parked->Grow(Bytes(10'001));
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_EQ(parked->bytes().size(), 8000u);
    HostMapping moved;
    moved = *std::move(parked);
    EXPECT_EQ(books.used(), Bytes(8000));
  }
  EXPECT_EQ(books.used(), Bytes(0));
  EXPECT_EQ(books.peak(), Bytes(8000));
}

// As on a machine of two nodes; where that is not this one, it is anywhere.
TEST(HostMapping, IsZeroWhereverItIs) {
  const NumaPlace place = NumaPlace::OnSynthetic("numa:2 core:1 pu:1", {.device_node = 1});
  auto made = HostMapping::Make(Bytes(100'000), nullptr, kParked, &place);
  ASSERT_TRUE(made.ok()) << made.status();
  std::memset(made->bytes().data(), 7, made->bytes().size());
  ASSERT_TRUE(made->Grow(Bytes(300'000)).ok());
  EXPECT_EQ(made->bytes()[99'999], std::byte{7});
  EXPECT_TRUE(std::all_of(made->bytes().begin() + 100'000, made->bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

// On no books, and without a name while it lives.
TEST(HostMapping, OfADriveIsAFileThere) {
  const std::string drive = testing::TempDir() + "/siphon_host_memory" + std::to_string(getpid());
  auto made =
      HostMapping::MakeOnDrive(Bytes(100'000), {.directory = drive, .name = "siphon-worker-0"});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->bytes().size(), 100'000u);
  EXPECT_TRUE(std::all_of(made->bytes().begin(), made->bytes().end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_TRUE(std::filesystem::is_empty(drive));
  std::memset(made->bytes().data(), 7, made->bytes().size());
  ASSERT_TRUE(made->Grow(Bytes(300'000)).ok());
  ASSERT_EQ(made->bytes().size(), 300'000u);
  EXPECT_EQ(made->bytes()[99'999], std::byte{7});
  EXPECT_EQ(made->bytes()[100'000], std::byte{0});
  const absl::Status full = made->Grow(Bytes(int64_t{1} << 60));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(made->bytes().size(), 300'000u);
  HostMapping moved = *std::move(made);
  EXPECT_EQ(moved.bytes()[99'999], std::byte{7});
  std::filesystem::remove_all(drive);
}

TEST(HostClaim, SaysWhoHasTheHostsMemory) {
  MemoryLedger books(Bytes(10'240));
  auto steps = HostClaim::Take(Bytes(4096), &books, kHostSteps);
  ASSERT_TRUE(steps.ok()) << steps.status();
  auto buffers = HostClaim::Take(Bytes(1024), &books, kDriveBuffers);
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  const auto refused = HostClaim::Take(Bytes(5121), &books, kParked);
  EXPECT_EQ(refused.status(),
            absl::ResourceExhaustedError(
                "host memory exhausted: parked tensors need 5.00 KiB, and of 10.0 KiB all workers "
                "together have taken optimizer steps 4.00 KiB, buffers of drives 1.00 KiB; a "
                "larger memory.host_capacity, where the machine has it, would do"));
  steps = HostClaim();
  EXPECT_EQ(books.used(), Bytes(1024));
  EXPECT_TRUE(HostClaim::Take(Bytes(5121), &books, kParked).ok());
}

}  // namespace
}  // namespace siphon
