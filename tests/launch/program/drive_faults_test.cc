// Drives that are full, fill up, are cut or lose their directory while the real program parks
// tensors there, and workers that die with tensors on them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launch/program/mount_small.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr double kLimitSeconds = 10;  // from a fault to the end of the job
// Of worker 0 in the sixth step, while what the microbatch saved is on the drive.
constexpr char kWhileParked[] = "0SWAP_IN0.0";

class DriveFaults : public TinyJobTest {
 protected:
  DriveFaults() { fs::create_directory(drive()); }
  std::string drive() const { return PathOf("drive"); }
  // Worker 0 parks what it has no room for: all kept, it needs 1.40 MiB.
  std::vector<std::string> Parking(const std::string& resume = "none") const {
    return {"train", job(),
            "--set", "memory.strategy=nvme_swap",
            "--set", "memory.capacity=1390KiB",
            "--set", "memory.nvme_directory=" + drive(),
            "--set", "checkpoint.resume=" + resume};
  }
  // `harm` is done while worker 0 stands still with tensors on the drive; then it goes on.
  ProgramEnd HarmedWhileParked(const std::function<void(const ProcessId& worker)>& harm,
                               std::function<bool()> prepare = nullptr) {
    return HarmedAt(absl::StrCat("5:", kWhileParked), harm, std::move(prepare));
  }
  ProgramEnd HarmedAt(const std::string& place,
                      const std::function<void(const ProcessId& worker)>& harm,
                      std::function<bool()> prepare) {
    RunOptions options{.environment = {absl::StrCat("SIPHON_INJECT_FAULT=0:", place, ":stop")},
                       .prepare = std::move(prepare)};
    options.meanwhile = [&](pid_t program) {
      const std::optional<ProcessId> worker = WaitForStopped(program);
      if (!worker.has_value()) return;  // how it ended, the test sees
      harm(*worker);
      kill(static_cast<pid_t>(worker->pid), SIGCONT);
    };
    return Siphon(Parking(), options);
  }
  // The entry in /proc of the worker's file on the drive; empty if there is none.
  static std::string OpenFileOf(const ProcessId& worker, const std::string& name) {
    for (const auto& entry : fs::directory_iterator(absl::StrCat("/proc/", worker.pid, "/fd"))) {
      std::error_code gone;
      const std::string to = fs::read_symlink(entry.path(), gone).string();
      if (absl::StrContains(to, name) && absl::EndsWith(to, " (deleted)")) {
        return entry.path().string();
      }
    }
    return "";
  }
  // The small drive is in the worker's mount name space.
  void Fill(const ProcessId& worker) const {
    std::ofstream filler(absl::StrCat("/proc/", worker.pid, "/root", drive(), "/filler"));
    const std::string megabyte(1 << 20, 'x');
    int written = 0;
    while (filler.write(megabyte.data(), 1 << 20).flush()) ASSERT_LT(++written, 80);
    EXPECT_GT(written, 64);
  }
  void ExpectResumesBitwise() {
    EXPECT_EQ(RunCheckpoint("run", 4), ExpectedCheckpoint(4));
    const ProgramEnd next = Siphon(Parking("auto"));
    EXPECT_EQ(next.exit_code, 0) << next.errors;
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    ExpectDriveEmpty();
  }
  // From the first step on, as if nothing had been.
  void ExpectLeftForTheHost(const ProgramEnd& end) {
    EXPECT_THAT(end.errors, ContainsRegex("warning: worker 0: .* do(es)? not give the room that is "
                                          "planned: [0-9]+ groups? go(es)? to the host from step 1 "
                                          "on"));
    EXPECT_THAT(end.errors, ContainsRegex("\n  parked      .* a step to the host; "));
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
    ExpectNothingLeft();
  }
  void ExpectDriveEmpty() {
    EXPECT_TRUE(!fs::exists(drive()) || fs::is_empty(drive()));
    ExpectNothingLeft();
  }
};

TEST_F(DriveFaults, AFileWithoutItsNameAndDirectoryGoesOn) {
  const ProgramEnd end = HarmedWhileParked([this](const ProcessId& worker) {
    EXPECT_TRUE(fs::is_empty(drive()));
    EXPECT_NE(OpenFileOf(worker, drive() + "/siphon-"), "");
    fs::remove_all(drive());
  });
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("worker 0 parks up to [0-9.]+ KiB on the drive of "));
  EXPECT_THAT(end.errors, ContainsRegex("\n  parked      .* a step to the host's drives"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectDriveEmpty();
}

TEST_F(DriveFaults, AFileThatSomebodyCutsEndsTheJobAndItGoesOnFromTheLastCheckpoint) {
  const ProgramEnd end = HarmedWhileParked([this](const ProcessId& worker) {
    const std::string file = OpenFileOf(worker, drive() + "/siphon-");
    ASSERT_NE(file, "");
    EXPECT_EQ(truncate(file.c_str(), 0), 0);
  });
  EXPECT_EQ(end.exit_code, 1) << end.errors;
  EXPECT_THAT(end.errors,
              ContainsRegex("siphon: worker 0 failed \\(rank 0, pid [0-9]+\\) during "
                            "0[A-Z_0-9.]+\n  cause: INTERNAL: .*drive file .*/siphon-.*"
                            ": (somebody has cut it to [0-9]+ of|reading) [0-9]+ bytes"));
  EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
  ExpectDriveEmpty();
  ExpectResumesBitwise();
}

TEST_F(DriveFaults, AWorkerThatDiesLeavesNothingOnTheDrive) {
  const ProgramEnd end = HarmedWhileParked(
      [](const ProcessId& worker) { kill(static_cast<pid_t>(worker.pid), SIGKILL); });
  EXPECT_EQ(end.exit_code, 5) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr(absl::StrCat(" during ", kWhileParked, "\n")));
  EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
  ExpectDriveEmpty();
  ExpectResumesBitwise();
}

TEST_F(DriveFaults, AFullDriveIsFoundBeforeTheStart) {
  const ProgramEnd end =
      Siphon(Parking(), {.prepare = [this] { return MountSmall(drive(), "size=1m"); }});
  if (end.exit_code == kForbidden) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors,
              ContainsRegex("memory.strategy nvme_swap: the drive of .*/drive has 1.00 MiB free; "
                            "to park tensors there takes [0-9.]+ KiB, and 64.0 MiB must stay "
                            "free; free some, or name another drive in memory.nvme_directory\n"));
  ExpectNothingLeft();
}

// Its blocks were set aside at the begin.
TEST_F(DriveFaults, ADriveThatFillsUpGoesOn) {
  const ProgramEnd end = HarmedWhileParked([this](const ProcessId& worker) { Fill(worker); },
                                           [this] { return MountSmall(drive(), "size=72m"); });
  if (end.exit_code == kForbidden) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// Between the look at the drive and the file on it: what goes there goes to the host.
TEST_F(DriveFaults, ADriveThatFillsUpBeforeTheFileIsThereIsLeftForSecondChoices) {
  const ProgramEnd end = HarmedAt(
      "0:making its stages", [this](const ProcessId& worker) { Fill(worker); },
      [this] { return MountSmall(drive(), "size=72m"); });
  if (end.exit_code == kForbidden) GTEST_SKIP() << "skipped, because mounting is forbidden here";
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, ContainsRegex("worker 0: the drive of .*/drive has [0-9.]+ [KM]?i?B "
                                        "free; to park tensors there takes [0-9.]+ KiB, and 64.0 "
                                        "MiB must stay free"));
  ExpectLeftForTheHost(end);
}

// A file that cannot be made: somebody has put another one where its directory was.
TEST_F(DriveFaults, ADriveThatCannotBeOpenedIsLeftForSecondChoices) {
  const ProgramEnd end = HarmedAt(
      "0:making its stages",
      [this](const ProcessId&) {
        fs::remove_all(drive());
        std::ofstream(drive()) << "no directory";
      },
      nullptr);
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  ExpectLeftForTheHost(end);
  fs::remove(drive());
}

TEST_F(DriveFaults, ADriveThatRefusesIsLeftForSecondChoices) {
  for (const char* kind : {"refuse", "fail"}) {
    SCOPED_TRACE(kind);
    const ProgramEnd end = Siphon(
        Parking(),
        {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=0:0:taking room on the drive:", kind)}});
    EXPECT_EQ(end.exit_code, 0) << end.errors;
    ExpectLeftForTheHost(end);
  }
}

// With a host that has room for the buffers of the drive and no more, and too little memory to
// compute anything again, or to lend.
TEST_F(DriveFaults, ADriveThatRefusesWithoutSecondChoiceEndsTheJob) {
  std::vector<std::string> arguments = Parking();
  arguments.insert(arguments.end(), {"--set", "memory.host_capacity=70KiB", "--set",
                                     "memory.capacity=[1370KiB,326KiB,396KiB,1240KiB]"});
  for (const auto& [kind, code] : {std::pair("refuse", 3), std::pair("fail", 1)}) {
    SCOPED_TRACE(kind);
    const ProgramEnd end = Siphon(
        arguments,
        {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=0:0:taking room on the drive:", kind)}});
    EXPECT_EQ(end.exit_code, code) << end.errors;
    EXPECT_THAT(end.errors, ContainsRegex("siphon: worker 0 .* during taking room on the drive\n  "
                                          "cause: .*are with nvme_swap, and the plan has no second "
                                          "choice for them"));
    EXPECT_LT(end.seconds, kLimitSeconds);
    ExpectDriveEmpty();
  }
}

}  // namespace
}  // namespace siphon
