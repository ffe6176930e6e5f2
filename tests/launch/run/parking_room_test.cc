#include "launch/run/parking/parking_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "launch/config/load_job_config.h"
#include "launch/plan_job/parking_region.h"
#include "launch/profile/predict_step.h"
#include "launch/run/parking/topology_ways.h"
#include "launch/run/record/memory_line.h"
#include "launch/run/run_worker.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

using testing::HasSubstr;

constexpr ParkingPlace kHost{Placement::kHostSwap, DeviceId(0)};

// The first job that anybody starts, on data that need no download.
TEST(Quickstart, FitsByParkingWithTheOtherWorkers) {
  auto job = LoadJobConfig("configs/jobs/quickstart.yaml", {});
  ASSERT_TRUE(job.ok()) << job.status();
  job->data = {.kind = "synthetic", .sequence_length = 64, .samples = 4096};
  job->model.vocabulary = 256;  // bytes, as of its text
  const auto prepared = PrepareJob(*job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_TRUE(prepared->kept_whole.has_value()) << "it would fit anyway";
  EXPECT_THAT(MemoryLine(*prepared), HasSubstr("worker 0 parks up to "));
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
  const auto drive = PrepareJob(TightJob("nvme_swap", 92), {});
  ASSERT_TRUE(drive.ok()) << drive.status();
  EXPECT_THAT(MemoryLine(*drive), HasSubstr(" on the drive of " + folder_ + ";"));
  const auto steps = PrepareJob(TightJob("optimizer_offload", 95), {});
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_THAT(MemoryLine(*steps),
              HasSubstr(absl::StrCat("worker 0 has its optimizer steps on the host, with ",
                                     FormatBytes(steps->host_steps[0]), " there")));
  EXPECT_EQ(MemoryLine(*PrepareJob(Job(4), {})), "");
}

// Workers on several hosts ask by it, whatever memory it is that they would lend.
TEST_F(ParkingJob, KnowsItsLendersWhereMemoryOfDevicesIsLent) {
  JobConfig job = TightJob("d2d_swap", 92);
  auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_GT(LayOutShared(*prepared).lent, Bytes(0));
  prepared->job.pipeline.backend = "cuda";
  EXPECT_EQ(LayOutShared(*prepared).lent, Bytes(0)) << "an arena of each device is";
  EXPECT_FALSE(LayOutRegion(RegionOf(*prepared, {}).parking).parts.empty());
  const auto host = PrepareJob(TightJob("host_swap", 92), {});
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_TRUE(LayOutRegion(RegionOf(*host, {}).parking).parts.empty());
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

// Held to a millionth of a DGX-1's rates: 48 kB/s over the two wires from device 0 to 1. A boundary
// of 2 sequences, 12 tokens and 24 numbers takes 48 ms, and four of them go forward and one back.
TEST_F(ParkingJob, MessagesAreHeldToTheTopologysRates) {
  JobConfig job = Job(2);
  job.train.steps = 1;
  const auto free = Trainer(job).Train();
  ASSERT_TRUE(free.ok()) << free.status();
  job.topology.name = "dgx1_v100";
  job.topology.throttle = "0.000001";
  const auto prepared = PrepareJob(job, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto predicted = PredictStep(prepared->plan_text);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const Nanos message =
      MovingTime(Bytes(2 * 12 * 24 * 4),
                 TopologyWays(*prepared->throttled).Between(DeviceId(0), DeviceId(1))->speed.rate);
  EXPECT_GT(message, Nanos(40'000'000));
  EXPECT_GE(predicted->step_time, message * 5);
  const auto begin = std::chrono::steady_clock::now();
  const auto held = Trainer(job).Train();
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::nanoseconds((message * 5).value));
  EXPECT_EQ(held->last_loss, free->last_loss);
}

// With tensors large enough for a drive to hide behind the computation, and little room elsewhere.
// Where a drive is as good as computing again, either may be in the plan: so the first capacity at
// which it is.
TEST_F(ParkingJob, AutoUsesADriveOnlyWhereTheJobNamesOne) {
  JobConfig job = Job(4);
  job.model.layers = 4;
  job.model.hidden = 128;
  job.model.heads = 4;
  job.data.sequence_length = 64;
  job.train.global_batch = 32;
  job.train.microbatch = 4;
  job.train.steps = 2;
  job.memory.host_capacity = Bytes(2 << 20);  // for buffers, and little beside them
  bool used = false;
  for (const int64_t kibibytes : {9'000, 10'000, 11'000, 9'500, 8'700}) {
    job.memory.capacity = {Bytes(kibibytes << 10)};
    job.memory.nvme_directory.clear();
    const auto without = PrepareJob(job, {});
    if (!without.ok()) continue;
    EXPECT_EQ(DriveBytes(without->parking), Bytes(0));
    EXPECT_TRUE(without->plan_text.topology.drives.empty());
    job.memory.nvme_directory = folder_ + "/drive";
    const auto with = PrepareJob(job, {});
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ(with->plan_text.topology.drives.size(), 1u);
    used = DriveBytes(with->parking) > Bytes(0);
    if (!used) continue;
    EXPECT_THAT(MemoryLine(*with), HasSubstr(" on the drive of " + folder_ + "/drive"));
    break;
  }
  ASSERT_TRUE(used);
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
  const auto made =
      ParkingRoom::Make(*prepared, WorkerId(0), prepared->parking[0], RegionOf(*prepared, {}));
  EXPECT_TRUE(absl::IsResourceExhausted(made.status())) << made.status();
  EXPECT_EQ(RefusingTier(made.status()), Placement::kNvmeSwap);
}

// `siphon plan` says that it fits, on the devices that the job names.
TEST_F(ParkingJob, RefusedWithAnotherServersMemoryIsToldThatItIsNotUsed) {
  JobConfig job = TightJob("d2d_swap", 30);
  job.topology.name = "dgx1_v100";
  const absl::Status refused = PrepareJob(job, {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("\n  dgx1_v100 is not used: CPU workers are on its devices with "
                                 "topology.throttle only"));
  job.topology.name.clear();
  EXPECT_THAT(std::string(PrepareJob(job, {}).status().message()),
              testing::Not(testing::HasSubstr("is not used")));
}

}  // namespace
}  // namespace siphon
