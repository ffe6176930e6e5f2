// Workers that are processes, each on a fake CUDA device of its own, as on a server: messages
// between devices, memory of other devices opened by IPC, and NCCL's memory as it is measured.
// What comes out has the bits of the CPU's workers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/launch/run/device_processes.h"
#include "tests/support/fake_cuda/fake_control.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

// As many as the jobs' topology has.
constexpr char kFourDevices[] = "SIPHON_FAKE_CUDA_DEVICES=4";

class OwnDevices : public DeviceProcesses {
 protected:
  // What workers say at their end of the devices that they have a context on, each sorted.
  static std::multiset<std::string> Contexts(const std::string& said) {
    const std::string words = "contexts on ";
    std::multiset<std::string> contexts;
    for (size_t at = said.find(words); at != std::string::npos; at = said.find(words, at + 1)) {
      const size_t begin = at + words.size();
      contexts.insert(said.substr(begin, said.find(',', begin) - begin));
    }
    return contexts;
  }
  End RunWell(const std::string& strategy, int workers) const {
    JobFile(workers, strategy, strategy == "keep" ? 100 : 93);
    End end = Run({.environment = kFourDevices, .workers = workers});
    EXPECT_EQ(end.exit_code, 0) << end.said;
    EXPECT_THAT(end.said, Not(HasSubstr("warning")));
    EXPECT_EQ(Count("0 copies of memory that is not locked, 0 freed while others", end.said),
              workers)
        << end.said;
    return end;
  }
};

TEST_F(OwnDevices, GiveTwoWorkersTheCpusBits) {
  const auto expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  const End kept = RunWell("keep", 2);
  EXPECT_TRUE(Trained() == expected) << kept.said;
  EXPECT_THAT(Contexts(kept.said), UnorderedElementsAre("0", "1"));

  // Most of what is parked is with devices that no worker has, where its owner takes memory itself.
  const End lent = RunWell("d2d_swap", 2);
  EXPECT_TRUE(Trained() == expected) << lent.said;
  EXPECT_THAT(lent.said, ContainsRegex("worker 0 parks up to [^;]* with worker 1 and [^;]* with "
                                       "device 2 and [^;]* with device 3;"));
  EXPECT_EQ(Count(" 1 opened", lent.said), 1) << lent.said;
  EXPECT_THAT(Contexts(lent.said), UnorderedElementsAre("0 2 3", "1"));

  const End on_host = RunWell("host_swap", 2);
  EXPECT_TRUE(Trained() == expected) << on_host.said;
  EXPECT_THAT(on_host.said, ContainsRegex("worker 0 parks up to [0-9.]+ KiB with the host;"));

  const End any = RunWell("auto", 2);
  EXPECT_TRUE(Trained() == expected) << any.said;
  EXPECT_THAT(any.said, HasSubstr("to fit into memory.capacity"));
}

TEST_F(OwnDevices, GiveFourWorkersTheCpusBits) {
  const auto expected = OnCpu();
  ASSERT_FALSE(expected.empty());
  for (const std::string strategy : {"keep", "d2d_swap", "host_swap", "auto"}) {
    SCOPED_TRACE(strategy);
    const End end = RunWell(strategy, 4);
    EXPECT_TRUE(Trained() == expected) << end.said;
    EXPECT_THAT(Contexts(end.said), UnorderedElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(Count("to fit into memory.capacity", end.said), strategy == "keep" ? 0 : 1);
    if (strategy != "d2d_swap") continue;
    EXPECT_THAT(end.said, ContainsRegex("worker 1 parks up to [^;]* with worker 0 and [^;]* with "
                                        "worker 2 and [^;]* with worker 3;"));
    EXPECT_EQ(Count(" 3 opened", end.said), 1) << end.said;
  }
}

// What it takes beyond the plan is of what devices have beside memory.capacity.
TEST_F(OwnDevices, SayWhatNcclHasOfThem) {
  const auto expected = OnCpu();
  JobFile(2, "keep", 100);
  const auto run = [this](int64_t megabytes) {
    return Run({absl::StrCat(kFourDevices, " SIPHON_FAKE_NCCL_MEMORY=", megabytes << 20),
                "--set checkpoint.resume=none", 2});
  };
  const End more = run(128);
  EXPECT_EQ(more.exit_code, 0) << more.said;
  for (const int worker : {0, 1}) {
    EXPECT_THAT(more.said,
                ContainsRegex(absl::StrCat("warning: NCCL has 512 MiB of worker ", worker,
                                           "'s device, and [0-9]+ MiB were "
                                           "planned")));
  }
  EXPECT_TRUE(Trained() == expected) << more.said;

  const End most = run(500);
  EXPECT_EQ(most.exit_code, 3) << most.said;
  EXPECT_THAT(most.said, ContainsRegex("are left there: NCCL has 1.95 GiB \\([0-9]+ MiB were "
                                       "planned\\); with a memory.capacity smaller by "));
}

// Of one worker's device, which is the one that is named, before the first step.
TEST_F(OwnDevices, FailWhereSomebodyElseHasTheMemoryOfOne) {
  JobFile(2, "keep", 100);
  FakeCuda::Set("memory", kDeviceMemory);
  const int64_t taken = FakeCuda::TakeAllBut(int64_t{100} << 20, /*device=*/1);
  const End end = Run({kFourDevices, "", 2});
  FakeCuda::GiveBack(taken);
  EXPECT_EQ(end.exit_code, 1) << end.said;
  EXPECT_THAT(end.said,
              ContainsRegex("siphon: worker 1 failed .*\n.*the plan needs [0-9]+ MiB "
                            "more of the memory of worker 1's device, and 99.[0-9] MiB are left"));
  EXPECT_THAT(end.said, HasSubstr("the job ended before its first step was complete"));
}

// As where a topology names links that the machine does not have: what would go there goes its
// second way, before the first step, and the run says why.
TEST_F(OwnDevices, AreLeftForSecondChoicesWhereTheyAreOutOfReach) {
  const auto expected = OnCpu();
  JobFile(4, "d2d_swap", 93);
  const End end = Run({absl::StrCat(kFourDevices, " SIPHON_FAKE_CUDA_APART=1")});
  ASSERT_EQ(end.exit_code, 0) << end.said;
  EXPECT_THAT(end.said, ContainsRegex("worker [0-9]: worker [0-9] is out of its reach: [0-9]+ "
                                      "groups? (goes|go) to the host from step 1 on"));
  EXPECT_THAT(end.said, HasSubstr("cudaErrorPeerAccessUnsupported"));
  EXPECT_TRUE(Trained() == expected) << end.said;
}

// By the job's parent, for all: ranks of a user's mpirun would measure all at once.
TEST_F(OwnDevices, TakeTheTopologyThatWasMeasured) {
  JobFile(2, "host_swap", 93);
  const std::string environment = absl::StrCat(
      "SIPHON_FAKE_CUDA_LINKS='0>1=24e9 1>0=24e9 0>host=12e9 host>0=11e9 1>host=12e9 host>1=11e9' "
      "SIPHON_FAKE_CUDA_NAME=H200 SIPHON_FAKE_CUDA_DEVICES=2 LD_LIBRARY_PATH=",
      SIPHON_FAKE_NVML_FOLDER, " XDG_CACHE_HOME=", folder_,
      "/cache SIPHON_FAKE_NVML='driver=580.65;0000:10:00.0,GPU-a,9.0,0000:11:00.0;"
      "0000:11:00.0,GPU-b,9.0,0000:10:00.0'");
  const std::string probe = "--set topology.source=probe";
  const End refused = Run({environment, probe, 2});
  // mpirun may end rank 0, which says why (probed_job_test.cc), when another one has ended.
  EXPECT_EQ(refused.exit_code, 2) << refused.said;
  const End alone = Run({environment, probe, 2, Launcher::kAlone});
  ASSERT_EQ(alone.exit_code, 0) << alone.said;
  const auto expected = OnCpu();
  EXPECT_TRUE(Trained() == expected) << alone.said;
  std::filesystem::remove_all(folder_ + "/cuda");
  const End kept = Run({environment, probe, 2});
  EXPECT_EQ(kept.exit_code, 0) << kept.said;
  EXPECT_TRUE(Trained() == expected) << kept.said;
}

}  // namespace
}  // namespace siphon
