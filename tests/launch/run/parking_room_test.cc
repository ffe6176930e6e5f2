#include "launch/run/parking_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "launch/plan_job/parking_region.h"
#include "launch/run/memory_line.h"
#include "launch/run/run_worker.h"
#include "launch/run/trainer.h"
#include "pipeline/torch/counting_allocator.h"
#include "tests/launch/run/small_job.h"

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

class ParkingJob : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }

  ParkingJob() : folder_(testing::TempDir() + "/siphon_parking_job" + std::to_string(getpid())) {}
  ~ParkingJob() override { std::filesystem::remove_all(folder_); }

  JobConfig Job(int stages) const {
    JobConfig job = SmallJob("gpt", folder_);
    job.pipeline.stages = stages;
    return job;
  }
  // With so many hundredths of what its fullest worker needs.
  JobConfig TightJob(const std::string& strategy, int64_t percent) const {
    JobConfig job = Job(4);
    job.memory.capacity = {Bytes(1)};
    job.memory.strategy = "keep";
    const absl::Status refused = PrepareJob(job, {}).status();
    const std::string text(refused.message());
    const std::string words = "worker 0 needs ";
    const size_t begin = text.find(words) + words.size();
    const auto needed = ParseBytes(text.substr(begin, text.find(" at its peak") - begin));
    EXPECT_TRUE(needed.ok()) << refused;
    job.memory.capacity = {Bytes(needed->value / 100 * percent)};
    job.memory.strategy = strategy;
    return job;
  }

  std::string folder_;
};

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
  const auto drive = PrepareJob(TightJob("nvme_swap", 92), {});
  ASSERT_TRUE(drive.ok()) << drive.status();
  EXPECT_THAT(MemoryLine(*drive), HasSubstr(" on the drive of " + folder_ + ";"));
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
  for (const char* strategy : {"d2d_swap", "host_swap", "nvme_swap", "auto", "mpress", "vdnn"}) {
    SCOPED_TRACE(strategy);
    const auto outcome = Trainer(TightJob(strategy, 92)).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
}

TEST_F(ParkingJob, LenderWithoutThatRoomRefusesAtTheStart) {
  JobConfig job = Job(1);
  job.memory.capacity = {Bytes(64 << 20)};
  auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->parking.resize(1);
  prepared->parking[0].bytes[{Placement::kPeerSwap, DeviceId(0)}] = Bytes(65 << 20);
  const auto outcome = RunWorker(*prepared, {.me = WorkerId(0)});
  EXPECT_TRUE(absl::IsResourceExhausted(outcome.status())) << outcome.status();
  EXPECT_THAT(std::string(outcome.status().message()),
              HasSubstr("tensors of other workers, which are parked here, need 65.0 MiB, "
                        "memory.capacity is 64.0 MiB"));
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

// With tensors large enough for a drive to hide behind the computation, and no room elsewhere.
TEST_F(ParkingJob, AutoUsesADriveOnlyWhereTheJobNamesOne) {
  JobConfig job = Job(4);
  job.model.layers = 4;
  job.model.hidden = 128;
  job.model.heads = 4;
  job.data.sequence_length = 64;
  job.train.global_batch = 32;
  job.train.microbatch = 4;
  job.train.steps = 2;
  job.memory.host_capacity = Bytes(64);
  job.memory.capacity = {Bytes(12 << 20)};
  const auto without = PrepareJob(job, {});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(DriveBytes(without->parking), Bytes(0));
  EXPECT_TRUE(without->plan_text.topology.drives.empty());
  job.memory.nvme_directory = folder_ + "/drive";
  const auto with = PrepareJob(job, {});
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->plan_text.topology.drives.size(), 1u);
  EXPECT_GT(DriveBytes(with->parking), Bytes(0));
  EXPECT_THAT(MemoryLine(*with), HasSubstr(" on the drive of " + folder_ + "/drive"));
  const auto trained = Trainer(job).Train();
  EXPECT_TRUE(trained.ok()) << trained.status();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/drive"));
}

TEST_F(ParkingJob, DriveWithTooLittleRoomIsRefused) {
  JobConfig job = TightJob("nvme_swap", 92);
  const auto ample = PrepareJob(job, {});
  ASSERT_TRUE(ample.ok()) << ample.status();
  ASSERT_GT(DriveBytes(ample->parking), Bytes(0));
  EXPECT_EQ(DriveBytes(ample->parking).value % 4096, 0);
  EXPECT_TRUE(CheckDriveRoom(*ample).ok());
  // Room for what the search of a plan has there on its way as well.
  job.memory.nvme_capacity = DriveBytes(ample->parking) * 2;
  const auto enough = PrepareJob(job, {});
  ASSERT_TRUE(enough.ok()) << enough.status();
  EXPECT_LE(DriveBytes(enough->parking), job.memory.nvme_capacity);
  job.memory.nvme_capacity = Bytes(4096);
  const auto refused = PrepareJob(job, {});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("memory.strategy nvme_swap is not enough"));
}

// The plan has room, the disk has not: found before any worker starts, and by the worker too.
TEST_F(ParkingJob, FullDiskIsFoundAtTheStart) {
  auto prepared = PrepareJob(TightJob("nvme_swap", 92), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  prepared->parking[0].bytes[{Placement::kNvmeSwap, DeviceId(0)}] = Bytes(int64_t{1} << 60);
  const absl::Status room = CheckDriveRoom(*prepared);
  EXPECT_TRUE(absl::IsResourceExhausted(room)) << room;
  EXPECT_THAT(std::string(room.message()),
              testing::MatchesRegex("memory.strategy nvme_swap: the drive of .* has .* free; to "
                                    "park tensors there takes .*; free some, or name another "
                                    "drive in memory.nvme_directory"));
  const auto made = ParkingRoom::Make(*prepared, WorkerId(0), {});
  EXPECT_TRUE(absl::IsResourceExhausted(made.status())) << made.status();
}

}  // namespace
}  // namespace siphon
