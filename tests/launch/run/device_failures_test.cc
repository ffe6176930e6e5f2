// What workers on devices say where a device fails them, and what a profiler sees of them.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launch/process/exit_codes.h"
#include "planner/status.h"
#include "tests/launch/run/device_workers.h"
#include "tests/support/fake_cuda/fake_control.h"
#include "tests/support/fake_nvtx/fake_nvtx.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// The plan fits, so it is no refusal of the job but a failure of its run: of the one exit code
// another one than of the other.
TEST_F(DeviceWorkers, FailWhereSomebodyElseHasTheDevicesMemory) {
  const auto prepared = PrepareJob(DeviceJob("keep", 100), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  for (const bool elsewhere : {true, false}) {
    const SeatedRun run = RunOn(*prepared, [&](WorkerSeat& seat, OtherTorchDevice& torch) {
      if (seat.me != WorkerId(1)) return;
      if (elsewhere) torch.RunShort({Bytes(4 << 20), Bytes(8 << 20), Bytes(32 << 20), Bytes(0)});
      seat.at_action = [](const Action& action) {
        return action.kind == ActionKind::kForward ? absl::ResourceExhaustedError("out of memory")
                                                   : absl::OkStatus();
      };
    });
    const absl::Status& end = run.ends[1].status();
    EXPECT_EQ(ExitCodeOfRun(end), elsewhere ? kExitFailure : kExitDoesNotFit) << end;
    EXPECT_EQ(absl::StrContains(end.message(),
                                "its device has 0 B left where tensors need 4.00 MiB more and may "
                                "take 24.0 MiB; memory.capacity counts on it: somebody else"),
              elsewhere)
        << end;
    EXPECT_TRUE(absl::IsUnavailable(run.ends[0].status())) << run.ends[0].status();
  }
}

// A device that breaks breaks for all of a process: streams and memory there can be given back to
// nobody. Each worker says so while it still has all of that.
TEST_F(DeviceWorkers, SayThatADeviceIsBrokenBeforeTheyTakeAnythingDown) {
  const auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  constexpr size_t kWorkers = 4;
  std::vector<absl::Status> said(kWorkers);
  std::vector<int64_t> streams(kWorkers);
  FakeCuda::Set("fail_copy", 20);
  FakeCuda::Set("fail_code", 220);  // cudaErrorNvlinkUncorrectable
  const SeatedRun run = RunOn(*prepared, [&](WorkerSeat& seat, OtherTorchDevice&) {
    const auto worker = static_cast<size_t>(seat.me.value);
    seat.at_failure = [&said, &streams, worker](const absl::Status& failure) {
      said[worker] = failure;
      streams[worker] = FakeCuda::Get("streams");
    };
  });
  FakeCuda::Reset();
  const auto owner = static_cast<size_t>(FirstLent(*prepared).owner.value);
  EXPECT_GT(streams[owner], 0);
  for (size_t worker = 0; worker < kWorkers; ++worker) {
    SCOPED_TRACE(worker);
    EXPECT_EQ(said[worker], run.ends[worker].status());
    EXPECT_EQ(ExitCodeOfRun(said[worker]), kExitFailure);
    EXPECT_THAT(std::string(said[worker].message()),
                ContainsRegex("device 0 does no more for this process, since "
                              "cudaErrorNvlinkUncorrectable \\(220\\): .*nvidia-smi nvlink -e"));
  }
}

// An arena that the device does not have, of tensors that have no second choice.
TEST_F(DeviceWorkers, FailWhereADeviceHasNotWhatItIsToLend) {
  auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  for (StagePlan& stage : prepared->plan.memory.stages) {
    for (PlannedGroup& planned : stage.groups) planned.choice.second_choice = Placement::kKeep;
  }
  const int lender = FirstLent(*prepared).place.lender.value;
  FakeCuda::Set("memory", 1 << 20);
  const SeatedRun run = RunOn(*prepared, nullptr);
  FakeCuda::Reset();
  const absl::Status& end = run.ends[static_cast<size_t>(lender)].status();
  EXPECT_EQ(CulpritOf(end), lender);
  EXPECT_EQ(ExitCodeOfRun(end), kExitFailure) << end;
  EXPECT_THAT(std::string(end.message()),
              HasSubstr("somebody else has taken memory of the device"));
}

#ifdef SIPHON_FAKE_NVTX
// By actions' names, one within another on each worker's thread, and copies beside them.
TEST_F(DeviceWorkers, ShowAProfilerWhatTheyDo) {
  setenv("NVTX_INJECTION64_PATH", SIPHON_FAKE_NVTX, /*overwrite=*/1);
  ASSERT_NE(TheCudaModule().Ranges(), nullptr);
  void* const profiler = dlopen(SIPHON_FAKE_NVTX, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(profiler, nullptr) << dlerror();
  const auto text =
      reinterpret_cast<decltype(&siphon_fake_nvtx_text)>(dlsym(profiler, "siphon_fake_nvtx_text"));
  const auto open =
      reinterpret_cast<decltype(&siphon_fake_nvtx_open)>(dlsym(profiler, "siphon_fake_nvtx_open"));

  const auto prepared = PrepareJob(DeviceJob("d2d_swap", 93), {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const Run run = Train(*prepared);
  EXPECT_TRUE(run.bits == OnCpu());
  EXPECT_EQ(open(), 0);
  const std::string seen = text();
  for (const std::vector<Action>& program : prepared->plan.training.programs) {
    for (const Action& action : program) {
      EXPECT_THAT(seen, HasSubstr(absl::StrCat("\npush 1 ", ToString(action), "\n")));
    }
  }
  EXPECT_THAT(seen, HasSubstr("\npush 2 wait\n"));
  for (const char* line :
       {"start [0-9]+ copy out, link [1-9]", "start [0-9]+ copy in, link [1-9]",
        "stream copy out, device 0", "thread copies of device 0", "thread worker 3"}) {
    EXPECT_THAT(seen, ContainsRegex(absl::StrCat("\n", line, "\n")));
  }
}
#endif

TEST_F(DeviceWorkers, TellNobodyWhatTheyDoWithoutAProfiler) {
  EXPECT_EQ(TheCudaModule().Ranges(), nullptr);
}

}  // namespace
}  // namespace siphon
