#ifndef SIPHON_TESTS_LAUNCH_RUN_PARKING_JOB_H_
#define SIPHON_TESTS_LAUNCH_RUN_PARKING_JOB_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "launch/run/job/prepare_job.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "tests/launch/run/small_job.h"

namespace siphon {

// Small jobs with less memory than their fullest worker needs.
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

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_RUN_PARKING_JOB_H_
