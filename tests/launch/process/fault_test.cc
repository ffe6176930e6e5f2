// Kills, stops and signals the processes of real jobs under a real mpirun, and looks at what is
// left. The job is fault_rank.cc; a fault is RANK:STEP:ACTION:KIND.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/process/process_probe.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

constexpr seconds kLimit(10);  // from a fault to the end of the job

constexpr char kContinue[] =
    "  continue with: siphon train job.yaml --set checkpoint.resume=auto\n";

struct Ending {
  int exit_code = -1;
  int signal = 0;
  std::string errors;
  std::string output;
  double seconds = 0;
};

std::string ReadToEnd(int file) {
  std::string text;
  char buffer[4096];
  ssize_t got;
  while ((got = read(file, buffer, sizeof buffer)) > 0) text.append(buffer, got);
  return text;
}

class Faults : public testing::Test {
 protected:
  Faults() {
    std::string pattern = (fs::temp_directory_path() / "siphon-fault-test-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    mark_ = absl::StrCat("SIPHON_FAULT_TEST=", root_);
  }

  ~Faults() override {
    for (const ProcessId& process : ProcessesWithEnvironment(mark_)) Kill(process);
    fs::remove_all(root_);
  }

  std::vector<std::string> Parent(int workers, int steps, const std::vector<std::string>& faults) {
    std::vector<std::string> command = {FAULT_RANK,          "parent", absl::StrCat(workers),
                                        absl::StrCat(steps), root_,    "1"};
    command.insert(command.end(), faults.begin(), faults.end());
    return command;
  }

  // Runs a parent in a session of its own until it ends.
  Ending Run(std::vector<std::string> command) {
    const std::string errors = root_ + ".err";
    const std::string output = root_ + ".out";
    const auto begin = steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      dup2(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      putenv(mark_.data());
      if (!mount_.empty() && !MountSmallRoot()) _exit(77);
      std::vector<char*> arguments;
      for (std::string& text : command) arguments.push_back(text.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    Ending ending;
    ending.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
    for (const auto& [path, text] :
         {std::pair{errors, &ending.errors}, std::pair{output, &ending.output}}) {
      const int file = open(path.c_str(), O_RDONLY);
      *text = ReadToEnd(file);
      close(file);
      unlink(path.c_str());
    }
    return ending;
  }

  // No process of the job lives; a parent that was killed cannot wait for them, so they have a
  // moment.
  void ExpectNoProcess(seconds moment = seconds(0)) {
    const auto deadline = steady_clock::now() + moment;
    while (!ProcessesWithEnvironment(mark_).empty() && steady_clock::now() < deadline) {
      poll(nullptr, 0, 20);
    }
    EXPECT_EQ(ProcessesWithEnvironment(mark_).size(), 0u);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& item : fs::directory_iterator(root_)) files.push_back(item.path().string());
    return files;
  }

  void ExpectNothingLeft(const Ending& ending) {
    EXPECT_LT(ending.seconds, std::chrono::duration<double>(kLimit).count());
    ExpectNoProcess();
    EXPECT_THAT(Files(), IsEmpty());
  }

  bool MountSmallRoot() const {
    if (unshare(CLONE_NEWNS) != 0) return false;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return mount("tmpfs", mount_.c_str(), "tmpfs", 0, "size=64m") == 0;
  }

  std::string root_;
  std::string mark_;
  std::string mount_;  // becomes a file system of 64 MiB for the parent
};

TEST_F(Faults, AJobWithoutThemEndsInPeace) {
  const Ending ending = Run(Parent(3, 12, {}));
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_EQ(ending.errors, "");
  ExpectNothingLeft(ending);
}

struct Where {
  const char* name;
  int step;
  const char* action;
  const char* left;
};
constexpr Where kPlaces[] = {
    {"FirstForward", 1, "0F0",
     "  the job ended before its first step was complete; there is no checkpoint to continue "
     "from\n"},
    {"SteadyState", 7, "0B0",
     "  the job ended after step 6; the last complete checkpoint is ckpt/step-5\n"},
    {"OptimizerStep", 7, "0STEP",
     "  the job ended after step 6; the last complete checkpoint is ckpt/step-5\n"},
    {"CheckpointWrite", 10, "writing a checkpoint",
     "  the job ended after step 10; the last complete checkpoint is ckpt/step-5\n"},
};

class FaultsOfRanks : public Faults, public testing::WithParamInterface<std::tuple<int, Where>> {
 protected:
  Ending RunWith(const char* kind) {
    const auto& [rank, where] = GetParam();
    return Run(Parent(3, 20, {absl::StrCat(rank, ":", where.step, ":", where.action, ":", kind)}));
  }
  // The report in whole; `how` and `cause` are regular expressions.
  static std::string Report(const std::string& verb, const std::string& how,
                            const std::string& cause, const std::string& left) {
    const auto& [rank, where] = GetParam();
    std::string text =
        absl::StrCat("siphon: worker ", rank, " ", verb, " \\(rank ", rank, ", pid [0-9]+", how,
                     "\\) during ", where.action, "\n", cause, left);
    return where.step > 5 ? text + kContinue : text;
  }
};
class SomeFaultsOfRanks : public FaultsOfRanks {};

TEST_P(FaultsOfRanks, ARankThatIsKilledEndsTheJobWithFive) {
  const Ending ending = RunWith("kill");
  EXPECT_EQ(ending.exit_code, 5);
  EXPECT_THAT(ending.errors, MatchesRegex(Report("was lost", ", killed by signal 9 \\(Killed\\)",
                                                 "", std::get<Where>(GetParam()).left)));
  ExpectNothingLeft(ending);
}

TEST_P(SomeFaultsOfRanks, ARankThatStandsStillIsLostAfterTheTimeout) {
  const Ending ending = RunWith("stop");
  EXPECT_EQ(ending.exit_code, 5);
  // mpirun continues a stopped process before it ends it: the checkpoint may become complete then.
  const std::string left =
      absl::StrReplaceAll(std::get<Where>(GetParam()).left, {{"step-5", "step-(5|10)"}});
  EXPECT_THAT(ending.errors,
              MatchesRegex(Report("was lost", ", no heartbeat for 2.00 s", "", left)));
  ExpectNothingLeft(ending);
}

TEST_P(SomeFaultsOfRanks, ARankThatFailsEndsTheJobWithItsCause) {
  const Ending ending = RunWith("fail");
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_THAT(
      ending.errors,
      MatchesRegex(Report("failed", "", "  cause: INTERNAL: injected:\n    forward of stage 0\n",
                          std::get<Where>(GetParam()).left)));
  ExpectNothingLeft(ending);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<int, Where>>& info) {
  return absl::StrCat("Rank", std::get<0>(info.param), "In", std::get<1>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(EverywhereInAStep, FaultsOfRanks,
                         testing::Combine(testing::Values(0, 1, 2), testing::ValuesIn(kPlaces)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(EachRankAndPlaceOnce, SomeFaultsOfRanks,
                         testing::Values(std::tuple(1, kPlaces[0]), std::tuple(2, kPlaces[1]),
                                         std::tuple(0, kPlaces[2]), std::tuple(0, kPlaces[3])),
                         NameOf);

struct OtherEnd {
  const char* name;
  const char* fault;
  int exit_code;
  const char* first_line;  // a regular expression
};

class OtherFaults : public Faults, public testing::WithParamInterface<OtherEnd> {};

TEST_P(OtherFaults, EndTheJobWithTheirExitCode) {
  const Ending ending = Run(Parent(3, 20, {GetParam().fault}));
  EXPECT_EQ(ending.exit_code, GetParam().exit_code);
  EXPECT_THAT(ending.errors, ContainsRegex(absl::StrCat("(^|\n)siphon: ", GetParam().first_line)));
  EXPECT_THAT(ending.errors, Not(HasSubstr("-----")));  // mpirun's own notices
  ExpectNothingLeft(ending);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, OtherFaults,
    testing::Values(
        OtherEnd{"Segfault", "1:3:0F0:segv", 5,
                 "worker 1 was lost \\(rank 1, pid [0-9]+, killed by signal 11"},
        OtherEnd{"ExitCode", "1:3:0F0:exit7", 5,
                 "worker 1 was lost \\(rank 1, pid [0-9]+, exited with code 7\\)"},
        OtherEnd{"EarlyExit", "1:3:0F0:exit0", 5,
                 "worker 1 was lost \\(rank 1, pid [0-9]+, exited without finishing its work\\)"},
        OtherEnd{"ExitBeforeEntering", "1:0:load:exit7", 5, "worker [02] was lost .*"},
        OtherEnd{"BadInput", "2:1:0F0:bad_input", 2, "worker 2 failed"},
        OtherEnd{"NoRoom", "0:1:0F0:no_room", 3, "worker 0 failed"},
        OtherEnd{"KilledAfterItsWork", "0:21:leave:kill", 1, "all steps are done, but"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Faults, ARankThatHangsInItsOwnEndIsEndedByItsHeartbeat) {
  // Nobody aborts: neither the callback nor the main thread reacts.
  const Ending ending = Run(Parent(2, 20, {"0:1:0F0:deaf", "1:1:0F0:deaf", "1:3:0F0:fail"}));
  EXPECT_EQ(ending.exit_code, 1);
  EXPECT_THAT(ending.errors, HasSubstr("worker 1 failed"));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, AJobOfOneWorkerIsWatchedByItsParent) {
  const Ending ending = Run(Parent(1, 20, {"0:3:0F0:stop"}));
  EXPECT_EQ(ending.exit_code, 5);
  EXPECT_THAT(ending.errors, HasSubstr("no heartbeat for 2.00 s"));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, ARankThatIsKilledBeforeAnyHasEnteredIsLost) {
  const Ending ending = Run(Parent(1, 20, {"0:0:load:kill"}));
  EXPECT_EQ(ending.exit_code, 5);
  EXPECT_THAT(ending.errors, MatchesRegex("siphon: worker 0 was lost \\(rank 0, killed by signal 9 "
                                          "\\(Killed\\)\\)\n  the job ended before .*\n"));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, ProcessesThatARankStartedEndWithTheJob) {
  const Ending ending = Run(Parent(2, 20, {"1:2:0F0:child", "1:3:0F0:kill"}));
  EXPECT_EQ(ending.exit_code, 5);
  ExpectNothingLeft(ending);
}

TEST_F(Faults, AKilledMpirunTakesItsWorkersAlong) {
  const Ending ending = Run(Parent(3, 200, {"1:7:0F0:kill_mpirun"}));
  EXPECT_EQ(ending.exit_code, 5);
  EXPECT_THAT(ending.errors,
              MatchesRegex(absl::StrCat(
                  "siphon: mpirun \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\), and its "
                  "workers with it\n  the job ended after step [567]; the last complete checkpoint "
                  "is ckpt/step-5\n",
                  kContinue)));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, AKilledParentTakesAllAlongAndTheNextJobCleansUp) {
  const Ending killed = Run(Parent(3, 100'000, {"1:7:0F0:kill_parent"}));
  EXPECT_EQ(killed.signal, SIGKILL);
  ExpectNoProcess(seconds(5));
  EXPECT_EQ(Files().size(), 1u);
  const Ending next = Run(Parent(3, 5, {}));
  EXPECT_EQ(next.exit_code, 0);
  ExpectNothingLeft(next);
}

TEST_F(Faults, ATerminatedMpirunLeavesTimeForACheckpoint) {
  const Ending ending = Run(Parent(3, 100'000, {"1:7:0F0:term_mpirun"}));
  EXPECT_EQ(ending.exit_code, 4) << ending.errors;
  ExpectNothingLeft(ending);
}

struct StopCase {
  const char* name;
  const char* kind;
};

class Stops : public Faults, public testing::WithParamInterface<std::tuple<StopCase, Where>> {};

TEST_P(Stops, FinishTheStepAndWriteACheckpoint) {
  const auto& [stop, where] = GetParam();
  const Ending ending = Run(
      Parent(3, 100'000, {absl::StrCat(1, ":", where.step, ":", where.action, ":", stop.kind)}));
  EXPECT_EQ(ending.exit_code, 4) << ending.errors;
  const bool by_parent = !absl::StrContains(stop.kind, "mpirun");
  EXPECT_EQ(ending.errors, by_parent ? "siphon: finishing the step, writing a checkpoint; press "
                                       "Ctrl-C again to stop at once\n"
                                     : "mpirun: Forwarding signal 10 to job\n");
  ExpectNothingLeft(ending);
}

INSTANTIATE_TEST_SUITE_P(
    EverywhereInAStep, Stops,
    testing::Combine(testing::Values(StopCase{"Interrupt", "int_parent"},
                                     StopCase{"InterruptOfTheGroup", "int_group"},
                                     StopCase{"User1", "usr1_parent"},
                                     StopCase{"User1OfMpirun", "usr1_mpirun"},
                                     StopCase{"Terminate", "term_parent"}),
                     testing::ValuesIn(kPlaces)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name, "In", std::get<1>(info.param).name);
    });

TEST_F(Faults, ASecondInterruptStopsAtOnce) {
  const Ending ending =
      Run(Parent(3, 100'000, {"0:1:0F0:stubborn", "1:6:0F0:int_group", "1:40:0F0:int_group"}));
  EXPECT_EQ(ending.exit_code, 130);
  EXPECT_THAT(ending.errors,
              MatchesRegex(
                  absl::StrCat("siphon: finishing the step, .*\nsiphon: stopped at once\n  the job "
                               "ended after step [0-9]+; the last complete checkpoint is "
                               "ckpt/step-[0-9]+\n",
                               kContinue)));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, AFirstInterruptAfterAStopRequestIsStillGentle) {
  const Ending ending =
      Run(Parent(3, 60, {"0:1:0F0:stubborn", "1:3:0F0:usr1_parent", "1:40:0F0:int_parent"}));
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_THAT(ending.errors, HasSubstr("already stopping after this step"));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, ADirectoryThatIsTooSmallIsPassedOverAndSaidOnce) {
  mount_ = root_ + ".small";
  fs::create_directory(mount_);
  std::vector<std::string> command = Parent(2, 5, {});
  command[4] = absl::StrCat(mount_, ",", root_);
  command[5] = "100";
  const Ending ending = Run(command);
  fs::remove(mount_);
  if (ending.exit_code == 77) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_EQ(ending.errors, absl::StrCat("siphon: ", mount_,
                                        " has 64.0 MiB free, and this job needs 112 MiB of "
                                        "shared memory: it is in ",
                                        root_, " instead\n"));
  ExpectNothingLeft(ending);
}

TEST_F(Faults, WithoutAnyRoomTheJobIsRefused) {
  mount_ = root_ + ".small";
  fs::create_directory(mount_);
  std::vector<std::string> command = Parent(2, 5, {});
  command[4] = mount_;
  command[5] = "100";
  const Ending ending = Run(command);
  fs::remove(mount_);
  if (ending.exit_code == 77) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_EQ(ending.errors,
            absl::StrCat("siphon: no directory has room for the 112 MiB of shared memory that this "
                         "job needs: ",
                         mount_,
                         " has 64.0 MiB free. Set TMPDIR to a directory with "
                         "room, or enlarge /dev/shm (docker run --shm-size=113m)\n"));
}

}  // namespace
}  // namespace siphon
