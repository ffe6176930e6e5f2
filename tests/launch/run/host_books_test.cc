// What plans take of the host's memory against what its books count in runs: to the byte, over
// strategies, schedules and capacities.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/profile/host_use.h"
#include "launch/run/trainer.h"
#include "planner/status.h"
#include "tests/launch/run/parking_job.h"

namespace siphon {
namespace {

class HostBooks : public ParkingJob {
 protected:
  // What the job's plan takes of the host.
  static absl::StatusOr<HostUse> PlannedUse(const JobConfig& job) {
    SIPHON_ASSIGN_OR_RETURN(const PreparedJob prepared, PrepareJob(job, {}));
    return HostUseOf(prepared.parking, prepared.host_steps);
  }
  // Trains two steps.
  void ExpectAsPlanned(JobConfig job, const absl::StatusOr<HostUse>& planned) {
    ASSERT_TRUE(planned.ok()) << planned.status();
    std::filesystem::remove_all(folder_);
    job.train.steps = 2;
    job.checkpoint.every_steps = 0;
    const auto outcome = Trainer(job).Train();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->host_peak, planned->total()) << ToString(*planned);
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
      const absl::StatusOr<HostUse> planned = PlannedUse(job);
      if (absl::IsResourceExhausted(planned.status())) continue;
      ExpectAsPlanned(job, planned);
      if (!planned.ok()) continue;
      parked += planned->parked;
      steps += planned->steps;
      buffers += planned->drive_buffers;
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
    const absl::StatusOr<HostUse> planned = PlannedUse(job);
    if (absl::IsResourceExhausted(planned.status())) continue;
    ExpectAsPlanned(job, planned);
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
    const absl::StatusOr<HostUse> planned = PlannedUse(job);
    ExpectAsPlanned(job, planned);
    EXPECT_GT(planned.value_or(HostUse()).total(), Bytes(0));
  }
}

// At the capacity that the plan takes exactly it runs; the books have no byte to spare.
TEST_F(HostBooks, ACapacityOfExactlyWhatIsPlannedIsEnough) {
  for (const char* strategy : {"host_swap", "optimizer_offload"}) {
    SCOPED_TRACE(strategy);
    JobConfig job = TightJob(strategy, 95);
    const absl::StatusOr<HostUse> ample = PlannedUse(job);
    ASSERT_TRUE(ample.ok()) << ample.status();
    ASSERT_GT(ample->total(), Bytes(0));
    // Second choices may be others, where there is no room for those of drives and lenders.
    job.memory.host_capacity = ample->total();
    const absl::StatusOr<HostUse> exact = PlannedUse(job);
    ExpectAsPlanned(job, exact);
    // What a search may not try there, it may find to be needless.
    EXPECT_LE(exact.value_or(HostUse()).total(), ample->total());
    job.memory.host_capacity = ample->total() - Bytes(1);
    const absl::StatusOr<HostUse> less = PlannedUse(job);
    if (less.ok()) {
      EXPECT_LT(less->total(), ample->total());
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(less.status())) << less.status();
      EXPECT_THAT(std::string(less.status().message()), testing::HasSubstr("the host"));
    }
  }
}

}  // namespace
}  // namespace siphon
