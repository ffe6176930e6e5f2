// Every job file that we ship is one, and says in its first line what it is.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/config/load_job_config.h"
#include "tests/launch/config/config_fixture.h"

namespace siphon {
namespace {

// CTest starts us in the project's root.
const char* const kJobs = "configs/jobs";

TEST(ExampleJobs, LoadAndReadBackAsThemselves) {
  int jobs = 0;
  ASSERT_TRUE(std::filesystem::is_directory(kJobs)) << "run from the project's root";
  for (const auto& entry : std::filesystem::directory_iterator(kJobs)) {
    ++jobs;
    ConfigLimits limits = SmallMachine();
    limits.machine_memory = Bytes();  // a job may be meant for a larger machine than this
    const auto trained = LoadJobConfig(entry.path().string(), {}, limits);
    limits.known.purpose = JobPurpose::kStudy;
    limits.known.schedules.push_back("dapple");
    const auto job = LoadJobConfig(entry.path().string(), {}, limits);
    ASSERT_TRUE(job.ok()) << job.status();
    if (job->pipeline.backend == "cpu") {
      EXPECT_TRUE(trained.ok()) << trained.status();
    }
    const auto again = ParseJobConfig(WriteJobConfig(*job), "written.yaml", {}, limits);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *job) << entry.path();
    std::string first;
    std::getline(std::ifstream(entry.path()), first);
    EXPECT_EQ(first.substr(0, 2), "# ") << entry.path() << " begins with where it comes from";
  }
  EXPECT_GE(jobs, 6);
}

TEST(ExampleJobs, TheQuickstartIsTheMainJob) {
  const auto job = LoadJobConfig(std::string(kJobs) + "/quickstart.yaml", {}, SmallMachine());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model.kind, "gpt");
  EXPECT_EQ(job->pipeline.stages, 4);
  // 12 h^2 a block and the byte embedding: at least 0.8 million without biases and positions.
  EXPECT_GE(
      12 * job->model.hidden * job->model.hidden * job->model.layers + 256 * job->model.hidden,
      800'000);
  EXPECT_EQ(job->data.path, "runs/data/bible.txt");
  EXPECT_GT(job->train.validate_every, 0);
  EXPECT_GT(job->checkpoint.every_steps, 0);
}

}  // namespace
}  // namespace siphon
