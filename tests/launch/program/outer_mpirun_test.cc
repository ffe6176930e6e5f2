// The real program started by a user's own mpirun: no parent of ours, and mpirun's exit code.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/config/read_text_file.h"
#include "tests/launch/program/mpirun_job.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

class OuterMpirun : public MpirunJobTest {
 protected:
  // Open MPI's files are in the test's folder.
  ProgramEnd Mpirun(int ranks, const std::vector<std::string>& arguments, RunOptions options = {}) {
    for (const char* directory : {"btl_vader_backing_directory", "osc_sm_backing_directory"}) {
      options.environment.push_back(absl::StrCat("OMPI_MCA_", directory, "=", PathOf("tmp")));
    }
    return RunUnderMpirun(
        {"-np", absl::StrCat(ranks), "--oversubscribe", "--mca", "btl", "self,vader"}, arguments,
        options);
  }

  // Of a rank that is lost so in its sixth step.
  void ExpectOneReport(int rank, const std::string& fault, const std::string& cause,
                       const std::vector<std::string>& settings) {
    std::vector<std::string> arguments = {"train", job()};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    const ProgramEnd end = Mpirun(
        4, arguments,
        {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", rank, ":5:", rank, "B1:", fault)}});
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.errors,
                ContainsRegex(absl::StrCat(
                    "\nsiphon: worker ", rank, " was lost \\(rank ", rank, ", pid [0-9]+, ", cause,
                    "\\) during ", rank,
                    "B1\n  the job ended after step 5; the last complete checkpoint is ",
                    CheckpointPath("run", 4), "\n  continue with: ", SIPHON_PROGRAM, " ",
                    absl::StrJoin(arguments, " "), " --set checkpoint.resume=auto\n")));
    EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
    EXPECT_LT(end.seconds_since_last_step, 10);
    ExpectNothingLeft();
  }

  // Of two ranks with `arguments` behind the job and two with `setting`; `who` (a pattern) says it.
  void ExpectDifferentJobs(const std::vector<std::string>& arguments, const std::string& setting,
                           const std::string& who) {
    std::vector<std::string> all = {"train", job()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {":", "-np", "2", SIPHON_PROGRAM, "train", job(), "--set", setting});
    const ProgramEnd end = Mpirun(2, all);
    EXPECT_EQ(end.exit_code, 2) << end.errors;
    EXPECT_THAT(end.errors,
                ContainsRegex(absl::StrCat(who,
                                           "ranks 0 and 2 were started with different jobs; "
                                           "all take the same job file and --set\n")));
    EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
    EXPECT_FALSE(fs::exists(PathOf("run")));
    ExpectNothingLeft();
  }
};

TEST_F(OuterMpirun, GivesTheSameBitsAsOneStage) {
  const ProgramEnd end = Mpirun(4, {"train", job()});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

TEST_F(OuterMpirun, GivesTheSameBitsWithMpiMessages) {
  const ProgramEnd end = Mpirun(4, {"train", job(), "--set", "pipeline.transport=mpi"});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// Which rank 0 searches for.
TEST_F(OuterMpirun, FollowsThePlanThatAParentWouldHaveFound) {
  const std::string capacity = "memory.capacity=1.42MB";
  const ProgramEnd end =
      Mpirun(4, {"train", job(), "--set", capacity, "--set", "memory.strategy=auto"});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("to fit into memory.capacity, "));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  const ProgramEnd parents =
      Siphon({"train", job(), "--set", capacity, "--set", "memory.strategy=auto", "--set",
              absl::StrCat("output.directory=", PathOf("parents"))});
  EXPECT_EQ(parents.exit_code, 0) << parents.errors;
  EXPECT_EQ(ReadTextFile(PathOf("run/plan.txt"), "plan").value(),
            ReadTextFile(PathOf("parents/plan.txt"), "plan").value());
  ExpectNothingLeft();
}

// Before anybody searches, where all have to; and where only some would.
TEST_F(OuterMpirun, StartsNothingWhereRanksHaveOtherCapacities) {
  for (const char* capacity : {"1.42MB", "1.9MB"}) {
    ExpectDifferentJobs({"--set", absl::StrCat("memory.capacity=", capacity)},
                        "memory.capacity=1.43MB", "siphon: (rank 0: )?");
  }
}

// By the one that has searched.
TEST_F(OuterMpirun, RefusesOnceWhatDoesNotFit) {
  const ProgramEnd end = Mpirun(4, {"train", job(), "--set", "memory.capacity=100kB"});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("siphon: the job does not fit: worker 0 needs "));
  EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
  EXPECT_FALSE(fs::exists(PathOf("run")));
  ExpectNothingLeft();
}

TEST_F(OuterMpirun, OfTheWrongSizeIsRefusedOnce) {
  const ProgramEnd end = Mpirun(3, {"train", job()});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.errors,
              HasSubstr(absl::StrCat("siphon: ", job(),
                                     ":19:11: pipeline.stages: the job has 4 workers and was "
                                     "started with 3 processes; start it with mpirun -np 4, or "
                                     "without mpirun\n")));
  EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
  EXPECT_FALSE(fs::exists(PathOf("run")));
  ExpectNothingLeft();
}

TEST_F(OuterMpirun, StartsNothingWhereRanksHaveDifferentJobs) {
  ExpectDifferentJobs({}, "train.learning_rate=0.02", "siphon: rank 0: ");
}

// mpirun itself says nothing of what it could not write.
TEST_F(OuterMpirun, FailsWhereItsDiskHasNoRoomForTheOutcome) {
  const ProgramEnd end = Run({"sh",
                              "-c",
                              "exec \"$@\" > /dev/full",
                              "sh",
                              "mpirun",
                              "--allow-run-as-root",
                              "--oversubscribe",
                              "--bind-to",
                              "none",
                              "--mca",
                              "btl",
                              "self,vader",
                              "-np",
                              "4",
                              SIPHON_PROGRAM,
                              "train",
                              job(),
                              "--set",
                              "train.steps=2",
                              "--format",
                              "json"});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.errors, HasSubstr("siphon: rank 0: standard output could not be written: No "
                                    "space left on device\n"));
  EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
  ExpectNothingLeft();
}

TEST_F(OuterMpirun, EndsWithOneReportWhenARankIsKilled) {
  for (const int rank : {0, 2}) ExpectOneReport(rank, "kill", "its process is gone", {});
}

TEST_F(OuterMpirun, EndsWithOneReportWhenARankHangs) {
  for (const int rank : {0, 2}) {
    ExpectOneReport(rank, "hang", "no worker has begun anything for 1.50 s, and all wait for it",
                    {"--set", "launch.stall_timeout=1500ms"});
  }
}

// Where rank 0 looks for what it planned before, there is something that nobody ever writes.
class OuterMpirunPlans : public OuterMpirun {
 protected:
  void SetUp() override {
    OuterMpirun::SetUp();
    const ProgramEnd before = Mpirun(4, Arguments("before"));
    ASSERT_EQ(before.exit_code, 0) << before.errors;
    std::vector<std::string> plans;
    for (const auto& entry : fs::directory_iterator(PathOf("cache/siphon"))) {
      plans.push_back(entry.path());
    }
    ASSERT_EQ(plans.size(), 1);
    plan_ = plans.front();
    fs::remove(plan_);
    ASSERT_EQ(mkfifo(plan_.c_str(), 0600), 0);
  }

  std::vector<std::string> Arguments(const std::string& directory) const {
    return {"train", job(),
            "--set", "memory.capacity=1.42MB",
            "--set", "launch.stall_timeout=2s",
            "--set", "launch.heartbeat_timeout=3s",
            "--set", absl::StrCat("output.directory=", PathOf(directory))};
  }

  // Waits until rank 0 reads it, which then waits until the file that is returned is closed.
  int OpenWhenRead() const {
    for (int look = 0; look < 6'000; ++look) {
      const int file = open(plan_.c_str(), O_WRONLY | O_NONBLOCK);
      if (file >= 0) return file;
      usleep(10'000);
    }
    ADD_FAILURE() << "nobody reads " << plan_;
    return -1;
  }

  void ExpectLostRankZero(const ProgramEnd& end, const std::string& how) {
    EXPECT_EQ(end.exit_code, 5) << end.errors;
    EXPECT_THAT(end.errors, ContainsRegex(absl::StrCat(
                                "siphon: rank 1: rank 0 was lost as it prepared the job: ", how)));
    EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
    EXPECT_FALSE(fs::exists(PathOf("run")));
    ExpectNothingLeft();
  }

 private:
  std::string plan_;
};

TEST_F(OuterMpirunPlans, EndWithOneReportWhereRankZeroStandsStill) {
  ExpectLostRankZero(Mpirun(4, Arguments("run")),
                     "nothing was computed there for [0-9.]+ s \\(launch.stall_timeout\\)\n");
}

TEST_F(OuterMpirunPlans, EndWithOneReportWhereRankZeroIsSilent) {
  int file = -1;
  RunOptions options;
  options.meanwhile = [&](pid_t) {
    file = OpenWhenRead();
    const std::optional<ProcessId> zero = ProcessOfRank(0);
    ASSERT_TRUE(zero.has_value());
    kill(static_cast<pid_t>(zero->pid), SIGSTOP);
  };
  std::vector<std::string> arguments = Arguments("run");
  arguments.insert(arguments.end(), {"--set", "launch.stall_timeout=60s"});
  ExpectLostRankZero(Mpirun(4, arguments, options),
                     "silent for [0-9.]+ s \\(launch.heartbeat_timeout\\)\n");
  close(file);
}

TEST_F(OuterMpirun, EndsWithOneReportWhereARankNeverComes) {
  const ProgramEnd end = Mpirun(
      3, {"train", job(), "--set", "launch.stall_timeout=2s", ":", "-np", "1", "sleep", "1000"});
  EXPECT_EQ(end.exit_code, 5) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("siphon: rank 0: not all ranks of the job have come for 2.00 s "
                                    "(launch.stall_timeout)\n"));
  EXPECT_EQ(LinesOfOurs(end.errors), 1) << end.errors;
  ExpectNothingLeft();
}

TEST_F(OuterMpirun, StopsOnUser1WithACheckpointAndZero) {
  RunOptions options = {.environment = {"SIPHON_INJECT_FAULT=1:4:1F1:stop"}};
  options.meanwhile = [this](pid_t mpirun) {
    const std::optional<ProcessId> stopped = WaitForStopped(mpirun);
    ASSERT_TRUE(stopped.has_value());
    kill(mpirun, SIGUSR1);
    usleep(200'000);  // mpirun passes it on; the other ranks have it before this one goes on
    kill(static_cast<pid_t>(stopped->pid), SIGCONT);
  };
  const ProgramEnd end = Mpirun(4, {"train", job()}, options);
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("\nstopped after step 5 of 12, in "));
  ExpectToGoOn();
}

}  // namespace
}  // namespace siphon
