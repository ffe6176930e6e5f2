// What plans take of the host's memory against what its books count in runs: to the byte, over
// strategies, schedules and capacities.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "launch/profile/host_use.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

class HostBooks : public ParkingJob {
 protected:
  HostUse PlannedUse(const JobConfig& job) {
    const auto prepared = PrepareJob(job, {});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return prepared.ok() ? HostUseOf(prepared->parking, prepared->host_steps) : HostUse();
  }
  // Trains two steps; what the plan takes of the host.
  HostUse ExpectAsPlanned(JobConfig job) {
    std::filesystem::remove_all(folder_);
    job.train.steps = 2;
    job.checkpoint.every_steps = 0;
    const HostUse use = PlannedUse(job);
    const auto outcome = Trainer(job).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok()) return use;
    EXPECT_EQ(outcome->host_peak, use.total()) << ToString(use);
    return use;
  }
};

class HostBooksOfSchedules : public HostBooks, public testing::WithParamInterface<const char*> {};

TEST_P(HostBooksOfSchedules, CountWhatIsPlanned) {
  Bytes parked, steps, buffers;
  for (const char* strategy : {"host_swap", "nvme_swap", "optimizer_offload", "weight_offload",
                               "l2l", "mpress", "auto", "capacity_based"}) {
    for (const int64_t percent : {95, 80}) {
      SCOPED_TRACE(testing::Message() << strategy << " at " << percent);
      JobConfig job = TightJob(strategy, percent);
      job.pipeline.schedule = GetParam();
      const auto prepared = PrepareJob(job, {});
      if (absl::IsResourceExhausted(prepared.status())) continue;
      const HostUse use = ExpectAsPlanned(job);
      parked += use.parked;
      steps += use.steps;
      buffers += use.drive_buffers;
    }
  }
  EXPECT_GT(parked, Bytes(0));
  EXPECT_GT(steps, Bytes(0));
  EXPECT_GT(buffers, Bytes(0));
}

INSTANTIATE_TEST_SUITE_P(Schedules, HostBooksOfSchedules, testing::Values("1f1b", "gpipe", "zb_h1"),
                         [](const auto& info) { return std::string(info.param); });

// A layer norm of 24 numbers takes 96 bytes, and 128 where memory is cut at cache lines.
TEST_F(HostBooks, StepsOnTheHostAreExactForOddSizes) {
  for (const int64_t stages : {1, 2, 4}) {
    SCOPED_TRACE(stages);
    JobConfig job = TightJob("optimizer_offload", 95);
    job.pipeline.stages = stages;
    if (stages < 4) job.memory.capacity = {job.memory.capacity[0] * (stages == 1 ? 3 : 2)};
    const auto prepared = PrepareJob(job, {});
    if (absl::IsResourceExhausted(prepared.status())) continue;
    ExpectAsPlanned(job);
  }
}

// Parameters of 16 bits, with float32 masters beside their moments.
TEST_F(HostBooks, CountWhatIsPlannedIn16Bits) {
  for (const char* strategy : {"optimizer_offload", "weight_offload", "l2l", "host_swap"}) {
    SCOPED_TRACE(strategy);
    const JobConfig ample = TightJob(strategy, 100);  // of what it needs in float32
    JobConfig job = ample;
    for (const int64_t percent : {95, 92, 90, 88}) {
      JobConfig tighter = ample;
      tighter.train.precision = "bf16";
      tighter.memory.capacity[0] = Bytes(ample.memory.capacity[0].value / 100 * percent);
      if (PrepareJob(tighter, {}).ok()) job = tighter;
    }
    ASSERT_EQ(job.train.precision, "bf16");
    EXPECT_GT(ExpectAsPlanned(job).total(), Bytes(0));
  }
}

// At the capacity that the plan takes exactly it runs; the books have no byte to spare.
TEST_F(HostBooks, ACapacityOfExactlyWhatIsPlannedIsEnough) {
  for (const char* strategy : {"host_swap", "optimizer_offload"}) {
    SCOPED_TRACE(strategy);
    JobConfig job = TightJob(strategy, 95);
    const HostUse ample = PlannedUse(job);
    ASSERT_GT(ample.total(), Bytes(0));
    // Second choices may be others, where there is no room for those of drives and lenders.
    job.memory.host_capacity = ample.total();
    EXPECT_EQ(ExpectAsPlanned(job).total(), ample.total());
    job.memory.host_capacity = ample.total() - Bytes(1);
    const auto less = PrepareJob(job, {});
    if (less.ok()) {
      EXPECT_LT(HostUseOf(less->parking, less->host_steps).total(), ample.total());
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(less.status())) << less.status();
      EXPECT_THAT(std::string(less.status().message()), testing::HasSubstr("the host"));
    }
  }
}

}  // namespace
}  // namespace siphon
