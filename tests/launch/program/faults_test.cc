// Kills, stops and signals the processes of the real program at named places of a real, tiny job,
// and looks at what is left. The phase in which a signal arrives is made sure of by a rank that
// stops itself there (SIPHON_INJECT_FAULT) until the signal is sent.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/checkpoint_directory.h"
#include "tests/launch/program/mount_small.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/support/all_cases.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr double kLimitSeconds = 10;  // from a fault to the end of the job

class Faults : public TinyJobTest {
 protected:
  static RunOptions Injected(int rank, const std::string& place, const std::string& kind) {
    return {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", rank, ":", place, ":", kind)}};
  }

  // Runs the job with a rank that stands still at `place` until `signal` has been sent.
  enum class Rank { kGoesOn, kStaysStopped };
  ProgramEnd SignalAt(int rank, const std::string& place,
                      const std::function<void(pid_t program)>& signal, Rank then = Rank::kGoesOn) {
    RunOptions options = Injected(rank, place, "stop");
    options.meanwhile = [this, signal, then](pid_t program) {
      const std::optional<ProcessId> stopped = WaitForStopped(program);
      ASSERT_TRUE(stopped.has_value()) << "the program ended before it was at the place";
      signal(program);
      if (then == Rank::kGoesOn) kill(static_cast<pid_t>(stopped->pid), SIGCONT);
    };
    return Siphon({"train", job()}, options);
  }

  void ExpectEndedInTime(const ProgramEnd& end) const {
    EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
    EXPECT_EQ(end.output, "");
    ExpectNothingLeft();
  }
};

struct Place {
  const char* name;
  const char* text;  // STEP:PLACE, with % for the rank
  int checkpoint;    // the newest complete one; 0: none
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

constexpr Place kPlaces[] = {
    {"FirstForward", "0:%F0", 0},
    {"SteadyBackward", "5:%B1", 4},
    {"Step", "5:%STEP", 4},
    {"WritingACheckpoint", "6:writing a checkpoint", 4},
    {"CompletingACheckpoint", "6:completing a checkpoint", 4},
};

std::string At(const Place& place, int rank) {
  return absl::StrReplaceAll(place.text, {{"%", absl::StrCat(rank)}});
}

// What the report names as the action.
std::string ActionAt(const Place& place, int rank) {
  return At(place, rank).substr(std::string(place.text).find(':') + 1);
}

class FaultsOfRanks : public Faults,
                      public testing::WithParamInterface<std::tuple<std::string, int, Place>> {
 protected:
  // The report in whole, as the end of the error output; `how` is a regular expression.
  std::string Report(const std::string& verb, const std::string& how,
                     const std::string& cause) const {
    const auto& [kind, rank, place] = GetParam();
    std::string report =
        absl::StrCat("siphon: worker ", rank, " ", verb, " \\(rank ", rank, ", pid [0-9]+", how,
                     "\\) during ", ActionAt(place, rank), "\n", cause);
    if (place.checkpoint == 0) {
      return report +
             "  the job ended before its first step was complete; there is no checkpoint to "
             "continue from\n";
    }
    // mpirun continues a stopped process before it ends it: the checkpoint may become complete
    // then.
    const std::string newest = kind == "stop" ? "[46]" : absl::StrCat(place.checkpoint);
    return absl::StrCat(report, "  the job ended after step [56]; the last complete checkpoint is ",
                        CheckpointPath("run", 0), newest, "\n  continue with: ", SIPHON_PROGRAM,
                        " train ", job(), " --set checkpoint.resume=auto\n");
  }
};

TEST_P(FaultsOfRanks, EndTheJobWithAReportAndLeaveNothing) {
  const auto& [kind, rank, place] = GetParam();
  const ProgramEnd end = Siphon({"train", job()}, Injected(rank, At(place, rank), kind));
  ExpectEndedInTime(end);
  if (kind == "fail" && place.name == std::string("CompletingACheckpoint")) {
    // Only the save fails; the run goes on and says so at once and at its end.
    const std::string warning = absl::StrCat("no checkpoint after step 6: worker ", rank,
                                             ": injected fault at completing a checkpoint\n");
    EXPECT_EQ(end.exit_code, 0);
    EXPECT_THAT(end.errors, HasSubstr("\nwarning: " + warning));
    EXPECT_THAT(end.errors, HasSubstr("\n  warning     " + warning));
    EXPECT_FALSE(fs::exists(CheckpointPath("run", 6)));
    EXPECT_EQ(RunCheckpoint("run", 4), ExpectedCheckpoint(4));
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    return;
  }
  if (kind == "kill") {
    EXPECT_EQ(end.exit_code, 5);
    EXPECT_THAT(end.errors,
                EndsWithRegex(Report("was lost", ", killed by signal 9 \\(Killed\\)", "")));
  } else if (kind == "stop") {
    EXPECT_EQ(end.exit_code, 5);
    EXPECT_THAT(end.errors, EndsWithRegex(Report("was lost", ", no heartbeat for 2.00 s", "")));
  } else {
    EXPECT_EQ(end.exit_code, 1);
    const std::string cause = "injected fault at " + ActionAt(place, rank) + "\n";
    EXPECT_THAT(end.errors, EndsWithRegex(Report("failed", "", "  cause: INTERNAL: .*" + cause)));
  }
  EXPECT_THAT(end.errors, Not(HasSubstr("-----")));  // mpirun's own notices
  if (place.checkpoint == 0) return;
  EXPECT_EQ(RunCheckpoint("run", 4), ExpectedCheckpoint(4));
  for (const auto& item : fs::directory_iterator(PathOf("run/checkpoints"))) {
    EXPECT_FALSE(absl::StartsWith(item.path().filename().string(), ".")) << item.path();
  }
}

// Each kind at each place once, the ranks in turn; the full product on request.
std::vector<std::tuple<std::string, int, Place>> FaultsToTry() {
  std::vector<std::tuple<std::string, int, Place>> chosen;
  const bool all = TakesAllCases();
  int turn = 0;
  for (const std::string kind : {"kill", "stop", "fail"}) {
    for (const Place& place : kPlaces) {
      for (int rank = 0; rank < 4; ++rank) {
        if (all || rank == turn % 4) chosen.emplace_back(kind, rank, place);
      }
      ++turn;
    }
  }
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(EachKindAndPlace, FaultsOfRanks, testing::ValuesIn(FaultsToTry()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "Rank",
                                               std::get<1>(info.param), "In",
                                               std::get<2>(info.param).name);
                         });

// A rank that goes on could end another step before the parent has seen mpirun's end.
// Each would take the other's half-written checkpoints for remains.
TEST_F(Faults, NoneToARunInWhoseFolderAnotherIsStarted) {
  fs::create_directories(PathOf("run/checkpoints"));
  for (const auto& [folder, key] :
       {std::pair("run", "output.directory"), {"run/checkpoints", "output.directory"}}) {
    const auto held = HoldAlone(PathOf(folder));  // as a run does
    ASSERT_TRUE(held.ok() && *held != nullptr) << held.status();
    const ProgramEnd end = Siphon({"train", job()});
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(end.errors,
                HasSubstr(absl::StrCat(key,
                                       ": another run that has not ended writes "
                                       "into '",
                                       PathOf(folder), "'; wait for it, or write another path\n")));
    EXPECT_EQ(HoldAlone(PathOf(folder)).value(), nullptr) << "still held";
  }
  EXPECT_EQ(Siphon({"train", job()}).exit_code, 0);
  EXPECT_NE(HoldAlone(PathOf("run")).value(), nullptr) << "given back";
  ExpectNothingLeft();
}

// A pipe that the parent has read is empty for its workers.
TEST_F(Faults, NoneFromAJobThatCanBeReadOnceOnly) {
  const ProgramEnd end = Run(
      {"/bin/sh", "-c", absl::StrCat("cat ", job(), " | ", SIPHON_PROGRAM, " train /dev/stdin")});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.errors,
            "siphon: /dev/stdin: is nothing that workers can read as well; write the job to a "
            "file\n");
  ExpectNothingLeft();
}

// A machine without ssh, as containers are: nothing but mpirun is to be found.
TEST_F(Faults, NoneWhereThereIsNoSsh) {
  const ProgramEnd which = Run({"/bin/sh", "-c", "command -v mpirun"});
  ASSERT_EQ(which.exit_code, 0) << which.errors;
  const std::string mpirun = which.output.substr(0, which.output.find('\n'));
  fs::create_directory(PathOf("bin"));
  fs::create_symlink(mpirun, PathOf("bin/mpirun"));
  const ProgramEnd end =
      Siphon({"train", job()}, {.environment = {absl::StrCat("PATH=", PathOf("bin"))}});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  ExpectNothingLeft();
}

TEST_F(Faults, AKilledMpirunTakesItsWorkersAlong) {
  const ProgramEnd end = SignalAt(
      2, "5:2B1", [this](pid_t) { kill(FindProcess("mpirun"), SIGKILL); }, Rank::kStaysStopped);
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.errors, EndsWithRegex(absl::StrCat(
                              "siphon: mpirun \\(pid [0-9]+\\) was killed by signal 9 "
                              "\\(Killed\\), and its workers with it\n  the job ended after "
                              "step 5; the last complete checkpoint is ",
                              CheckpointPath("run", 4), "\n  continue with: ", SIPHON_PROGRAM,
                              " train ", job(), " --set checkpoint.resume=auto\n")));
  ExpectEndedInTime(end);
}

TEST_F(Faults, AKilledParentTakesAllAlongAndTheNextStartCleansUpAndContinues) {
  const ProgramEnd killed = SignalAt(1, "5:1F2", [](pid_t program) { kill(program, SIGKILL); });
  EXPECT_EQ(killed.signal, SIGKILL);
  const ProgramEnd next = Siphon({"train", job(), "--set", "checkpoint.resume=auto"});
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectEndedInTime(next);
}

TEST_F(Faults, ARunThatContinuedStillNamesTheCheckpointItCameFrom) {
  ASSERT_EQ(Siphon({"train", job(), "--set", "train.steps=2"}).exit_code, 0);
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "checkpoint.resume=auto"}, Injected(1, "2:1F0", "kill"));
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.errors, EndsWithRegex(absl::StrCat(
                              "  the job ended after step 2; the last complete checkpoint is ",
                              CheckpointPath("run", 2), "\n  continue with: ", SIPHON_PROGRAM,
                              " train ", job(), " --set checkpoint.resume=auto\n")));
  ExpectEndedInTime(end);
}

TEST_F(Faults, ARunThatEndsBeforeItHasReadItsCheckpointNamesItToo) {
  ASSERT_EQ(Siphon({"train", job(), "--set", "train.steps=2"}).exit_code, 0);
  const ProgramEnd end = Siphon({"train", job(), "--set", "checkpoint.resume=auto"},
                                Injected(1, "0:making its stages", "kill"));
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.errors, EndsWithRegex(absl::StrCat(
                              "  the job ended before its first step was complete; the "
                              "last complete checkpoint is ",
                              CheckpointPath("run", 2), "\n  continue with: ", SIPHON_PROGRAM,
                              " train ", job(), " --set checkpoint.resume=auto\n")));
  ExpectNothingLeft();
}

TEST_F(Faults, AFinishedRunHasNothingToContinue) {
  ASSERT_EQ(Siphon({"train", job()}).exit_code, 0);
  const ProgramEnd end = Siphon({"train", job(), "--set", "checkpoint.resume=auto"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.errors, HasSubstr("\nnothing to do: all 12 steps are done\n  checkpoint  " +
                                    CheckpointPath("run", 12) + "\n"));
  EXPECT_EQ(end.output, "");
  const ProgramEnd shorter = Siphon({"train", job(), "--set", "checkpoint.resume=auto", "--set",
                                     "train.steps=10", "--format", "json"});
  EXPECT_EQ(shorter.exit_code, 0);
  EXPECT_THAT(shorter.errors,
              HasSubstr("\nnothing to do: the checkpoint is at step 12, beyond train.steps 10\n"));
  EXPECT_THAT(shorter.output, HasSubstr("\"steps_done\": 12,\n  \"loss\": null,\n"));
}

// What was asked for is lost, though all else is there.
TEST_F(Faults, AnOutcomeThatCannotBePrintedIsAFailure) {
  const auto full = [] {
    const int file = open("/dev/full", O_WRONLY);
    return file >= 0 && dup2(file, STDOUT_FILENO) == STDOUT_FILENO;
  };
  RunOptions options;
  options.prepare = full;
  const std::string said =
      "siphon: standard output could not be written: No space left on device\n";
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "train.steps=2", "--format", "json"}, options);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.errors, testing::EndsWith(said));
  EXPECT_TRUE(std::filesystem::exists(CheckpointPath("run", 2)));
  const ProgramEnd plan = Siphon({"plan", job(), "--format", "json"}, options);
  EXPECT_EQ(plan.exit_code, 1);
  EXPECT_THAT(plan.errors, testing::EndsWith(said));
  // Text of a run goes to standard error.
  EXPECT_EQ(Siphon({"train", job(), "--set", "train.steps=2"}, options).exit_code, 0);
  ExpectNothingLeft();
}

struct Stop {
  const char* name;
  std::function<void(pid_t program)> send;
};

void PrintTo(const Stop& stop, std::ostream* out) { *out << stop.name; }

class Stops : public Faults, public testing::WithParamInterface<std::tuple<Stop, Place>> {};

TEST_P(Stops, WriteACheckpointFromWhichTheRunContinuesBitwise) {
  const auto& [stop, place] = GetParam();
  const ProgramEnd end = SignalAt(1, At(place, 1), stop.send);
  EXPECT_EQ(end.exit_code, 4) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("siphon: finishing the step, writing a checkpoint; press "
                                    "Ctrl-C again to stop at once\n"));
  EXPECT_THAT(end.errors, ContainsRegex("\nstopped after step [167] of 12, in "));
  EXPECT_THAT(end.errors, HasSubstr(absl::StrCat("\nnext:\n  ", SIPHON_PROGRAM, " train ", job(),
                                                 " --set checkpoint.resume=auto\n")));
  ExpectEndedInTime(end);

  const ProgramEnd next = Siphon({"train", job(), "--set", "checkpoint.resume=auto"});
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_THAT(next.errors, ContainsRegex("\ncontinuing after step [167]\n"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectEndedInTime(next);
}

// Each signal in some phase and SIGUSR1 in each; the full product on request.
std::vector<std::tuple<Stop, Place>> StopsToTry() {
  const Stop stops[] = {
      {"User1", [](pid_t program) { kill(program, SIGUSR1); }},
      {"Interrupt", [](pid_t program) { kill(program, SIGINT); }},
      {"InterruptOfTheGroup", [](pid_t program) { kill(-program, SIGINT); }},
      {"Terminate", [](pid_t program) { kill(program, SIGTERM); }},
  };
  const bool all = TakesAllCases();
  std::vector<std::tuple<Stop, Place>> chosen;
  for (size_t stop = 0; stop < std::size(stops); ++stop) {
    for (size_t place = 0; place < std::size(kPlaces); ++place) {
      if (all || stop == 0 || place == stop) chosen.emplace_back(stops[stop], kPlaces[place]);
    }
  }
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(InEachPhase, Stops, testing::ValuesIn(StopsToTry()), [](const auto& info) {
  return absl::StrCat(std::get<0>(info.param).name, "In", std::get<1>(info.param).name);
});

TEST_F(Faults, ASecondInterruptStopsAtOnce) {
  RunOptions options = Injected(1, "5:1B1", "stop");
  options.meanwhile = [this](pid_t program) {
    ASSERT_TRUE(WaitForStopped(program).has_value());
    kill(-program, SIGINT);
    usleep(300'000);  // the same key press would be one interrupt
    kill(-program, SIGINT);
  };
  const ProgramEnd end = Siphon({"train", job()}, options);
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.errors, EndsWithRegex(absl::StrCat(
                              "siphon: stopped at once\n  the job ended after step 5; the last "
                              "complete checkpoint is ",
                              CheckpointPath("run", 4), "\n  continue with: ", SIPHON_PROGRAM,
                              " train ", job(), " --set checkpoint.resume=auto\n")));
  ExpectEndedInTime(end);
}

TEST_F(Faults, SharedMemoryThatIsTooSmallIsPassedOverAndSaidOnce) {
  // Wide boundaries and hardly any arithmetic, so that the rings need more than the 64 MiB of a
  // plain container.
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "model.kind=mlp", "--set", "model.vocabulary=8", "--set",
              "data.sequence_length=65536", "--set", "train.steps=1", "--set",
              "checkpoint.every_steps=0", "--set", "data.validation_fraction=0"},
             {.prepare = [] { return MountSmall("/dev/shm", "size=64m"); }});
  if (end.exit_code == kForbidden) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors,
              MatchesRegex(absl::StrCat("siphon: /dev/shm has [0-9.]+ MiB free, and this job needs "
                                        "[0-9.]+ MiB of shared memory: it is in ",
                                        PathOf("tmp"), " instead\n(.|\n)*")));
  ExpectNothingLeft();
}

TEST_F(Faults, AFullDiskCostsCheckpointsAndNotTheRun) {
  fs::create_directory(PathOf("small"));
  // A save takes about 300 KiB, so that the third one fails. The small disk is gone with the
  // program: what is on it is copied before.
  const std::string script = absl::StrCat(
      SIPHON_PROGRAM, " train ", job(), " --set checkpoint.directory=", PathOf("small"),
      "; code=$?; cp -a ", PathOf("small"), " ", PathOf("kept"), "; exit $code");
  const ProgramEnd end =
      Run({"sh", "-c", script},
          {.prepare = [this] { return MountSmall(PathOf("small"), "size=700k"); }});
  if (end.exit_code == kForbidden) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("\nwarning: no checkpoint after step [0-9]+: worker "
                                        "[0-3]: .*No space left on device"));
  EXPECT_THAT(
      end.errors,
      ContainsRegex(
          "\n  warning     4 checkpoints could not be written, the last: no checkpoint after step "
          "12: worker [0-3]: .*No space left on device\n"));
  EXPECT_EQ(CheckpointBits(PathOf("kept/step-00000002")), ExpectedCheckpoint(2));
  EXPECT_THAT(end.errors, ContainsRegex("\n  checkpoint  [^\n]*/small/step-0000000[24], which has "
                                        "[24] of 12 steps; the later ones are in none\n"));
  const std::string newest = NewestCheckpoint(PathOf("kept")).value_or("");
  EXPECT_EQ(CheckpointBits(newest), ExpectedCheckpoint(newest.back() - '0')) << newest;
  ExpectEndedInTime(end);
}

}  // namespace
}  // namespace siphon
