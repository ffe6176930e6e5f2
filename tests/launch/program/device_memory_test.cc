// Jobs of the real program whose workers need more memory than their devices have: refused before
// anything is started.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/program/device_jobs.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int64_t kMebibyte = 1 << 20;

// The job of tiny_job.h, much wider, on four devices.
class DeviceMemory : public TinyJobTest {
 protected:
  DeviceMemory() {
    UseProgram(DeviceProgram(PathOf("devices"), 4));
    WriteFile("job.yaml", OnDevices(TinyJobText()));
    fs::create_directories(PathOf("bin"));
    WriteFile("bin/mpirun", absl::StrCat("#!/bin/sh\ntouch ", PathOf("started"), "\n"));
    fs::permissions(PathOf("bin/mpirun"), fs::perms::owner_all);
  }
  // With devices of so much memory, and an mpirun that does nothing but leave a trace.
  ProgramEnd Train(int64_t mebibytes, const std::vector<std::string>& sets) {
    std::vector<std::string> arguments = {"train", job(), "--set", "model.hidden=1024"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return Siphon(
        arguments,
        {.environment = {absl::StrCat("PATH=", PathOf("bin"), ":/usr/bin:/bin"),
                         absl::StrCat("SIPHON_FAKE_CUDA_MEMORY=", mebibytes * kMebibyte)}});
  }
  void ExpectNothingStarted() const {
    EXPECT_FALSE(fs::exists(PathOf("started")));
    EXPECT_FALSE(fs::exists(PathOf("run")));
    for (const auto& entry : fs::directory_iterator(PathOf("devices"))) {
      EXPECT_EQ(entry.path().filename(), "board") << "memory of a device was taken";
    }
    ExpectNothingLeft();
  }
};

TEST_F(DeviceMemory, OfWhichAJobNeedsMoreThanThereIsNamesWhatWouldFit) {
  const ProgramEnd end = Train(1556, {"memory.strategy=keep"});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(
      end.errors,
      ContainsRegex("^siphon: the job does not fit: worker 0 needs 6[0-9]+ MiB at its peak, "
                    "memory.capacity is 532 MiB, [0-9.]+ MiB short\n"
                    "  smallest change that fits: --set train.optimizer=sgd "));
  EXPECT_THAT(end.errors, HasSubstr("\n  or --set memory.strategy=auto: "));
  EXPECT_THAT(end.errors,
              HasSubstr("\n  memory.capacity is not set: of device 0's 1.52 GiB a worker may have "
                        "532 MiB, as a context takes 1.00 GiB; "
                        "more takes a device with more memory\n"));
  ExpectNothingStarted();
  for (const char* change : {"memory.strategy=auto", "train.optimizer=sgd"}) {
    SCOPED_TRACE(change);
    Train(1556, {"memory.strategy=keep", change});
    EXPECT_TRUE(fs::remove(PathOf("started")));
  }
}

TEST_F(DeviceMemory, ThatNoStrategyFitsInto) {
  const ProgramEnd end = Train(1280, {"memory.strategy=auto"});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("\n  memory.strategy auto is not enough: worker 0 needs "));
  EXPECT_THAT(end.errors, HasSubstr("\n  memory.capacity is not set: of device 0's 1.25 GiB "));
  ExpectNothingStarted();
}

TEST_F(DeviceMemory, OfWhichMemoryCapacityAllowsMoreThanThereIsRefusesTheJob) {
  const ProgramEnd end = Train(400, {"memory.capacity=4GiB"});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(
      end.errors,
      ContainsRegex("^siphon: the job does not fit: worker 0 needs 6[0-9]+ MiB at its peak, "
                    "and device 0 has 400 MiB\n  memory.capacity allows more than that; "
                    "without it the job is planned with what devices have beside contexts "
                    "of 1.00 GiB\n$"));
  ExpectNothingStarted();
}

}  // namespace
}  // namespace siphon
