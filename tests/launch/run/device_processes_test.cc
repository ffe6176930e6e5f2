// Whole jobs whose workers are processes under mpirun, each on the fake CUDA device that they share
// (device_program.cc): messages by NCCL, lent memory opened by IPC, locked memory of the host. What
// comes out has the bits of the CPU's workers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/run/trainer.h"
#include "tests/launch/run/checkpoint_bits.h"
#include "tests/launch/run/device_job.h"
#include "tests/launch/run/parking_job.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int64_t kDeviceMemory = int64_t{2} << 30;
constexpr int64_t kLeft = 4 << 20;  // of it: less than a slab for each

class DeviceProcesses : public ParkingJob {
 protected:
  struct End {
    int exit_code = -1;
    std::string said;
  };
  void SetUp() override { ASSERT_TRUE(FakeCuda::IsThere()) << "LD_PRELOAD the fake libcudart"; }

  // Four of them; their output in the folder's "cuda".
  End Run(const std::string& strategy, int percent) const {
    SmallJobFile(strategy, percent);
    return Start("SIPHON_FAKE_CUDA_DEVICES=1", kUnderMpirun, "");
  }

  // The program alone starts an mpirun of its own.
  enum Launcher { kAlone, kUnderMpirun };
  End Start(const std::string& environment, Launcher launcher, const std::string& sets) const {
    const std::string mpirun = absl::StrCat(
        "mpirun -np 4 --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader --mca "
        "mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none ",
        geteuid() == 0 ? "--allow-run-as-root " : "");
    const std::string command = absl::StrCat(
        environment, " SIPHON_FAKE_CUDA_DIR=", FakeCuda::Directory(),
        " SIPHON_FAKE_CUDA_MEMORY=", kDeviceMemory, " TMPDIR=", folder_,
        " OMPI_MCA_btl_vader_backing_directory=", folder_,
        " OMPI_MCA_osc_sm_backing_directory=", folder_, " ", launcher == kUnderMpirun ? mpirun : "",
        SIPHON_DEVICE_PROGRAM, " train ", folder_, "/job.yaml --share_gpu", sets, " 2>&1");
    End end;
    FILE* const pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    while (pipe != nullptr && fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
      end.said += buffer.data();
    }
    const int status = pipe == nullptr ? -1 : pclose(pipe);
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    return end;
  }

  void SmallJobFile(const std::string& strategy, int percent) const {
    JobConfig job = PlainJob(Job(4), "cuda", folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/job.yaml") << WriteJobConfig(Tight(job, strategy, percent));
  }

  std::map<std::string, std::string> OnCpu() const {
    const auto outcome = Trainer(PlainJob(Job(4), "cpu", folder_)).Train();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? CheckpointBits(outcome->last_checkpoint)
                        : std::map<std::string, std::string>();
  }
};

TEST_F(DeviceProcesses, HaveTheCpusBits) {
  const auto expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  for (const char* strategy : {"d2d_swap", "nvme_swap", "optimizer_offload"}) {
    SCOPED_TRACE(strategy);
    const End end = Run(strategy, 93);
    ASSERT_EQ(end.exit_code, 0) << end.said;
    EXPECT_TRUE(CheckpointBits(folder_ + "/cuda/checkpoints/step-00000004") == expected)
        << end.said;
    EXPECT_THAT(end.said, HasSubstr("to fit into memory.capacity"));
    const std::string clean = "0 copies of memory that is not locked, 0 freed while others";
    size_t ranks = 0;
    for (size_t at = end.said.find(clean); at != std::string::npos;
         at = end.said.find(clean, at + 1)) {
      ++ranks;
    }
    EXPECT_EQ(ranks, 4u) << end.said;
  }
}

// As where a topology names links that the machine does not have: what would go there goes its
// second way, before the first step, and the run says why.
TEST_F(DeviceProcesses, TakeSecondChoicesWhereLendersAreOutOfReach) {
  const auto expected = OnCpu();
  SmallJobFile("d2d_swap", 93);
  const End end =
      Start("SIPHON_FAKE_CUDA_DEVICES=1 SIPHON_FAKE_CUDA_FAIL_OPEN=1", kUnderMpirun, "");
  ASSERT_EQ(end.exit_code, 0) << end.said;
  EXPECT_THAT(end.said, ContainsRegex("worker [0-9]: worker [0-9] is out of its reach: [0-9]+ "
                                      "groups? (goes|go) to the host from step 1 on"));
  EXPECT_THAT(end.said, HasSubstr("cudaErrorPeerAccessUnsupported"));
  EXPECT_TRUE(CheckpointBits(folder_ + "/cuda/checkpoints/step-00000004") == expected) << end.said;
}

// By the job's parent, for all: ranks of a user's mpirun would measure all at once.
TEST_F(DeviceProcesses, TakeTheTopologyThatWasMeasured) {
  SmallJobFile("host_swap", 93);
  std::string links;
  for (int from = 0; from < 4; ++from) {
    absl::StrAppend(&links, from, ">host=12e9 host>", from, "=11e9 ");
    for (int to = 0; to < 4; ++to) {
      if (to != from) absl::StrAppend(&links, from, ">", to, "=24e9 ");
    }
  }
  const std::string environment =
      absl::StrCat("SIPHON_FAKE_CUDA_LINKS='", links,
                   "' SIPHON_FAKE_CUDA_NAME=H200 SIPHON_FAKE_CUDA_DEVICES=4 LD_LIBRARY_PATH=",
                   SIPHON_FAKE_NVML_FOLDER, " XDG_CACHE_HOME=", folder_,
                   "/cache SIPHON_FAKE_NVML='driver=580.65;"
                   "0000:10:00.0,GPU-a,9.0,0000:11:00.0,0000:13:00.0;"
                   "0000:11:00.0,GPU-b,9.0,0000:10:00.0,0000:12:00.0;"
                   "0000:12:00.0,GPU-c,9.0,0000:11:00.0,0000:13:00.0;"
                   "0000:13:00.0,GPU-d,9.0,0000:12:00.0,0000:10:00.0'");
  const std::string probe = " --set topology.source=probe";
  const End refused = Start(environment, kUnderMpirun, probe);
  // mpirun may end rank 0, which says why (probed_job_test.cc), when another one has ended.
  EXPECT_EQ(refused.exit_code, 2) << refused.said;
  const End alone = Start(environment, kAlone, probe);
  ASSERT_EQ(alone.exit_code, 0) << alone.said;
  const auto expected = OnCpu();
  const std::string checkpoint = folder_ + "/cuda/checkpoints/step-00000004";
  EXPECT_TRUE(CheckpointBits(checkpoint) == expected) << alone.said;
  std::filesystem::remove_all(folder_ + "/cuda");
  const End kept = Start(environment, kUnderMpirun, probe);
  EXPECT_EQ(kept.exit_code, 0) << kept.said;
  EXPECT_TRUE(CheckpointBits(checkpoint) == expected) << kept.said;
}

// Planned for a device that has enough, and another process, here this one, has taken it.
TEST_F(DeviceProcesses, FailWhereSomebodyElseHasTheDevicesMemory) {
  const End alone = Run("keep", 100);
  ASSERT_EQ(alone.exit_code, 0) << alone.said;
  FakeCuda::Set("memory", kDeviceMemory);
  const int64_t taken = FakeCuda::TakeAllBut(kLeft, /*device=*/0);
  const End end = Run("keep", 100);
  FakeCuda::GiveBack(taken);
  EXPECT_EQ(end.exit_code, 1) << end.said;
  EXPECT_THAT(
      end.said,
      HasSubstr("memory.capacity counts on it: somebody else has taken memory of the device"));
}

}  // namespace
}  // namespace siphon
