// The transport over NCCL between processes, which this program starts, or mpirun: the conformance
// suite, and what happens when one is killed. On the fakes (LD_PRELOAD), or with SIPHON_GPU=1 on
// the first GPUs of this machine, on one of them if there is only one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/swap/device/line_process.h"

namespace siphon {
namespace {

// The job's directory, which no later job finds anything in.
class JobDirectory {
 public:
  JobDirectory() {
    std::string pattern = "/dev/shm/siphon-nccl-test-XXXXXX";
    SIPHON_CHECK(mkdtemp(pattern.data()) != nullptr, "there is room");
    path_ = pattern;
    setenv("SIPHON_NCCL_TEST_DIR", path_.c_str(), 1);
  }
  ~JobDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

 private:
  std::string path_;
};

enum Mode : int64_t { kSuite = 0, kLinger = 1 };

class NcclProcesses : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(FakeCuda::IsThere(), FakeCuda::IsGpuWanted())
        << "LD_PRELOAD the fakes (tests/support), or set SIPHON_GPU=1 without them";
  }
  // Of the fake; a real machine has those that it has.
  static void SetDevices(int devices) {
    setenv("SIPHON_FAKE_CUDA_DEVICES", std::to_string(devices).c_str(), 1);
  }
  static std::vector<std::unique_ptr<LineProcess>> Start(int ranks, Mode mode) {
    // The variable: on a machine that the programs were taken to.
    const char* const elsewhere = std::getenv("SIPHON_NCCL_RANK");
    std::vector<std::unique_ptr<LineProcess>> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      processes.push_back(
          std::make_unique<LineProcess>(elsewhere == nullptr ? SIPHON_NCCL_RANK : elsewhere,
                                        std::vector<int64_t>{rank, ranks, mode}));
    }
    return processes;
  }
  static void RunSuite(int ranks) {
    const JobDirectory directory;
    const auto processes = Start(ranks, kSuite);
    std::string passed;
    for (size_t rank = 0; rank < processes.size(); ++rank) {
      std::string said, last;
      for (std::string line = processes[rank]->Line(); !line.empty();) {
        said += line + "\n";
        last = line;
        // At once: a time limit may end this program, and whoever reads sees how far it came.
        if (FakeCuda::IsGpuWanted()) std::printf("rank %zu: %s\n", rank, line.c_str());
        std::fflush(stdout);
        line = processes[rank]->Line();
      }
      EXPECT_EQ(processes[rank]->End(), 0) << "rank " << rank << ":\n" << said;
      EXPECT_EQ(last, passed.empty() ? last : passed);  // as many as rank 0
      passed = last;
    }
    EXPECT_THAT(passed, testing::MatchesRegex("[1-9][0-9] passed"));
  }
};

TEST_F(NcclProcesses, PassTheConformanceSuiteOnADeviceEach) {
  SetDevices(3);
  RunSuite(3);
}

// As on a machine with one GPU: NCCL takes them for hosts.
TEST_F(NcclProcesses, PassTheConformanceSuiteOnOneDevice) {
  SetDevices(1);
  RunSuite(2);
}

#ifdef SIPHON_MPIRUN
TEST_F(NcclProcesses, PassTheConformanceSuiteUnderMpirun) {
  if (FakeCuda::IsGpuWanted()) GTEST_SKIP() << "skipped, because there may be no mpirun";
  SetDevices(3);
  setenv("SIPHON_FAKE_CUDA_DIR", FakeCuda::Directory().c_str(), 1);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const JobDirectory directory;
    FILE* const pipe = popen(
        absl::StrCat("mpirun -np ", ranks, " --oversubscribe --bind-to none ",
                     geteuid() == 0 ? "--allow-run-as-root " : "", SIPHON_NCCL_RANK, " 0 2>&1")
            .c_str(),
        "r");
    ASSERT_NE(pipe, nullptr);
    std::string said;
    std::array<char, 4096> buffer;
    while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) said += buffer.data();
    EXPECT_EQ(pclose(pipe), 0) << said;
    std::vector<std::string> passed;
    for (const absl::string_view line : absl::StrSplit(said, '\n')) {
      if (absl::EndsWith(line, " passed")) passed.emplace_back(line);
    }
    ASSERT_EQ(passed.size(), static_cast<size_t>(ranks)) << said;
    EXPECT_THAT(passed, testing::Each(passed[0]));
    EXPECT_THAT(passed[0], testing::MatchesRegex("[1-9][0-9] passed"));
  }
}
#endif

// NCCL does not say that a peer on the same host has died. Whoever watches the processes does, and
// the wait of the other one ends, and so does what it has on its device.
TEST_F(NcclProcesses, EndTheirWaitsWhenOneIsKilled) {
  SetDevices(2);
  const JobDirectory directory;
  const auto processes = Start(2, kLinger);
  EXPECT_EQ(processes[0]->Line(), "waiting");
  EXPECT_EQ(processes[1]->Line(), "waiting");
  processes[0]->Kill();
  processes[1]->Say("lost");
  const std::string said = processes[1]->Line();
  if (FakeCuda::IsGpuWanted()) {
    // Ranks that share a device are hosts of their own to NCCL and talk over sockets. NCCL may see
    // the end of one before anybody has the news of the worker, and reports it of the channel:
    // ncclRemoteError, or ncclInternalError where it was still connecting.
    EXPECT_THAT(said, testing::AnyOf("worker 0 was lost",
                                     testing::AllOf(testing::HasSubstr("worker 0 -> worker 1"),
                                                    testing::HasSubstr("NCCL: "))));
  } else {
    EXPECT_EQ(said, "worker 0 was lost");
  }
  EXPECT_EQ(processes[1]->Line(), "gone");
  EXPECT_EQ(processes[1]->End(), 0);
}

}  // namespace
}  // namespace siphon
