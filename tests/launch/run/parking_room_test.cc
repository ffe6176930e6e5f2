#include "launch/run/parking_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "launch/plan_job/parking_region.h"
#include "launch/run/memory_line.h"
#include "launch/run/run_worker.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};

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
  const auto made = HostMapping::Make(Bytes(int64_t{1} << 60));
  EXPECT_TRUE(absl::IsResourceExhausted(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("are not to be had"));
}

TEST_F(ParkingJob, SaysWhatItParksWhere) {
  const auto peers = PrepareJob(TightJob("d2d_swap", 92), {});
  ASSERT_TRUE(peers.ok()) << peers.status();
  EXPECT_THAT(MemoryLine(*peers),
              testing::MatchesRegex("with everything kept worker 0 would need .*, and may hold .*; "
                                    "to fit into memory.capacity, worker 0 parks up to .* with "
                                    "worker [123].*; a step should take [0-9.]+ .?s"));
  const auto host = PrepareJob(TightJob("host_swap", 92), {});
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_THAT(MemoryLine(*host), HasSubstr("with the host"));
  EXPECT_EQ(MemoryLine(*PrepareJob(Job(4), {})), "");
}

// Every owner has its own part of the region, the lenders count it all.
TEST_F(ParkingJob, RegionIsWhatLendersLend) {
  const auto prepared = PrepareJob(TightJob("d2d_swap", 92), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Bytes lent;
  for (int worker = 0; worker < 4; ++worker) lent += LentByWorker(*prepared, WorkerId(worker));
  EXPECT_GT(lent, Bytes(0));
  EXPECT_GE(ParkingRegionBytes(*prepared), lent);
  EXPECT_EQ(LentByWorker(*prepared, WorkerId(0)), Bytes(0));
}

TEST_F(ParkingJob, StaysWithinItsCapacityAsThreads) {
  for (const char* strategy : {"d2d_swap", "host_swap", "auto", "mpress", "vdnn"}) {
    SCOPED_TRACE(strategy);
    const auto outcome = Trainer(TightJob(strategy, 92)).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
}

TEST_F(ParkingJob, HostWithTooLittleRoomIsRefused) {
  JobConfig job = TightJob("host_swap", 92);
  const auto ample = PrepareJob(job, {});
  ASSERT_TRUE(ample.ok()) << ample.status();
  ASSERT_GT(HostBytes(ample->parking), Bytes(0));
  job.memory.host_capacity = Bytes(64);
  const auto refused = PrepareJob(job, {});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("memory.strategy host_swap is not enough"));
}

}  // namespace
}  // namespace siphon
