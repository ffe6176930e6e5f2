#include "launch/commands/known_plans.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

class KnownPlansTest : public testing::Test {
 protected:
  KnownPlansTest()
      : folder_(absl::StrCat(testing::TempDir(), "/siphon_known_plans", getpid())),
        known_(folder_ + "/cache") {
    fs::create_directories(folder_);
    job_.memory.capacity = {Bytes(1'000)};
  }
  ~KnownPlansTest() override { fs::remove_all(folder_); }

  std::string WriteFile(const std::string& name, const std::string& text) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << text;
    return path;
  }
  std::vector<fs::path> Kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/cache")) {
      files.push_back(entry.path());
    }
    return files;
  }

  std::string folder_;
  KnownPlans known_;
  JobConfig job_;
};

TEST_F(KnownPlansTest, AreThoseOfTheSameJob) {
  EXPECT_EQ(known_.Find(job_), "");
  known_.Keep(job_, "one plan\nof two lines\n");
  EXPECT_EQ(known_.Find(job_), "one plan\nof two lines\n");
  known_.Keep(job_, "another\n");
  EXPECT_EQ(known_.Find(job_), "another\n");
  EXPECT_EQ(Kept().size(), 1);
}

TEST_F(KnownPlansTest, DoNotDependOnWhatPlansDoNot) {
  known_.Keep(job_, "the plan");
  job_.train.steps = 7;
  job_.train.learning_rate = 0.5;
  job_.train.schedule = "constant";
  job_.train.warmup_steps = 3;
  job_.train.seed = 9;
  job_.model.init_from = "elsewhere";
  job_.output.directory = "runs/other";
  job_.checkpoint.resume = "auto";
  job_.launch.heartbeat_timeout = Nanos(5);
  EXPECT_EQ(known_.Find(job_), "the plan");
}

TEST_F(KnownPlansTest, AreOfNoOtherJob) {
  known_.Keep(job_, "the plan");
  const std::vector<std::function<void(JobConfig&)>> changes = {
      [](JobConfig& job) { job.model.layers += 1; },
      [](JobConfig& job) { job.train.microbatch += 1; },
      [](JobConfig& job) { job.train.precision = "bf16"; },
      [](JobConfig& job) { job.train.clip_norm = 0; },
      [](JobConfig& job) { job.train.optimizer = "sgd"; },
      [](JobConfig& job) { job.pipeline.schedule = "gpipe"; },
      [](JobConfig& job) { job.pipeline.stages += 1; },
      [](JobConfig& job) { job.memory.strategy = "recompute"; },
      [](JobConfig& job) { job.memory.capacity = {Bytes(999)}; },
      [](JobConfig& job) { job.memory.host_capacity = Bytes(5); },
      [](JobConfig& job) { job.topology.throttle = "0.5"; },
      [](JobConfig& job) { job.topology.name = "dgx1_v100"; },
  };
  for (size_t change = 0; change < changes.size(); ++change) {
    JobConfig other = job_;
    changes[change](other);
    EXPECT_EQ(known_.Find(other), "") << "change " << change;
  }
}

TEST_F(KnownPlansTest, AreOfTheFilesThatTheJobNames) {
  job_.pipeline.profile = WriteFile("profile.yaml", "as measured");
  known_.Keep(job_, "the plan");
  EXPECT_EQ(known_.Find(job_), "the plan");
  WriteFile("profile.yaml", "measured anew, and longer");
  EXPECT_EQ(known_.Find(job_), "");
  known_.Keep(job_, "its plan");
  EXPECT_EQ(known_.Find(job_), "its plan");
  fs::last_write_time(job_.pipeline.profile,
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(known_.Find(job_), "");
}

// A file under the right name is of another job all the same if it says so.
TEST_F(KnownPlansTest, SayWhatTheyAreOf) {
  known_.Keep(job_, "the plan");
  const std::vector<fs::path> kept = Kept();
  ASSERT_EQ(kept.size(), 1);
  std::ofstream(kept[0]) << "# of a job with the same checksum\nits plan";
  EXPECT_EQ(known_.Find(job_), "");
}

TEST_F(KnownPlansTest, AreForgottenInTheOrderInWhichTheyWereKept) {
  const std::string other = WriteFile("cache-note", "");
  known_.Keep(job_, "the plan");
  fs::rename(other, folder_ + "/cache/topology-1.yaml");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (int layers = 1; layers <= 5; ++layers) {
    for (const fs::path& kept : Kept()) {
      fs::last_write_time(kept, fs::last_write_time(kept) - std::chrono::hours(1));
    }
    JobConfig next = job_;
    next.model.layers = layers * 100;
    known_.Keep(next, absl::StrCat("plan of ", next.model.layers), 3);
  }
  EXPECT_LT(fs::last_write_time(folder_ + "/cache/topology-1.yaml"), long_ago);
  EXPECT_EQ(Kept().size(), 4);  // what is no plan is not forgotten
  for (int layers = 1; layers <= 5; ++layers) {
    JobConfig next = job_;
    next.model.layers = layers * 100;
    EXPECT_EQ(known_.Find(next), layers > 2 ? absl::StrCat("plan of ", layers * 100) : "");
  }
  EXPECT_EQ(known_.Find(job_), "");
}

TEST_F(KnownPlansTest, AreNotKeptOfJobsThatUseDrivesOrDoNotWantThem) {
  JobConfig on_drive = job_;
  on_drive.memory.strategy = "nvme_swap";
  JobConfig may_use_drive = job_;
  may_use_drive.memory.nvme_directory = folder_;
  JobConfig unwanted = job_;
  unwanted.memory.known_plans = false;
  for (const JobConfig& job : {on_drive, may_use_drive, unwanted}) {
    known_.Keep(job, "the plan");
    EXPECT_EQ(known_.Find(job), "");
  }
  EXPECT_FALSE(fs::exists(folder_ + "/cache"));
  const KnownPlans nowhere("");
  nowhere.Keep(job_, "the plan");
  EXPECT_EQ(nowhere.Find(job_), "");
}

// A place that cannot be written is no reason to fail.
TEST_F(KnownPlansTest, AreNotKeptWhereNothingCanBeWritten) {
  const KnownPlans in_file(WriteFile("file", "no folder"));
  in_file.Keep(job_, "the plan");
  EXPECT_EQ(in_file.Find(job_), "");
}

}  // namespace
}  // namespace siphon
