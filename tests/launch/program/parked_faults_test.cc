// Kills and stops lenders and owners of the real program while tensors are parked, refuses memory
// and slows links, and looks at what is left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/launch/program/device_jobs.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

constexpr double kLimitSeconds = 10;  // from a fault to the end of the job

#ifdef SIPHON_DEVICE_PROGRAM
// The least number that stands before `words` in the text.
int64_t LeastBefore(const std::string& words, const std::string& text) {
  int64_t least = INT64_MAX;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    const size_t begin = text.find_last_not_of("0123456789", at - 1) + 1;
    least = std::min<int64_t>(least, std::atoll(text.c_str() + begin));
  }
  return least;
}
#endif

enum class Workers { kOnCpu, kOnADeviceEach, kOnOneDevice };

struct ParkedFault {
  const char* name;
  const char* kind;
  int rank;
  const char* place;  // in the sixth step
  int exit_code;
  Workers workers = Workers::kOnCpu;
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const ParkedFault& fault, std::ostream* out) { *out << fault.name; }

class ParkedFaults : public TinyJobTest {
 protected:
  // Worker 0 parks with all others what it has no room for: all kept, it needs 1.40 MiB.
  std::vector<std::string> Parking(const std::string& more,
                                   const std::string& strategy = "d2d_swap",
                                   const std::string& capacity = "") const {
    std::vector<std::string> arguments = {"train", job()};
    if (share_device_) arguments.push_back("--share_gpu");
    for (const std::string& set :
         {"memory.strategy=" + strategy,
          "memory.capacity=" + (capacity.empty() ? tight_capacity_ : capacity),
          std::string("memory.check=full"), more}) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return arguments;
  }
#ifdef SIPHON_DEVICE_PROGRAM
  // From now on the job's workers are on fake CUDA devices, with NCCL, IPC and locked memory.
  void UseDevices(Workers workers) {
    share_device_ = workers == Workers::kOnOneDevice;
    UseProgram(DeviceProgram(PathOf("devices"), share_device_ ? 1 : 4));
    WriteFile("job.yaml", OnDevices(TinyJobText()));
    tight_capacity_ = TightCapacity(job());
  }
#endif

 private:
  std::string tight_capacity_ = "1370KiB";
  bool share_device_ = false;
};

class FaultsWhileParked : public ParkedFaults, public testing::WithParamInterface<ParkedFault> {
 protected:
  void SetUp() override {
#ifdef SIPHON_DEVICE_PROGRAM
    if (GetParam().workers != Workers::kOnCpu) UseDevices(GetParam().workers);
#endif
  }
};

TEST_P(FaultsWhileParked, EndTheJobWithAReportAndItGoesOnFromTheLastCheckpoint) {
  const ParkedFault& fault = GetParam();
  const ProgramEnd end =
      Siphon(Parking("checkpoint.resume=none"),
             {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", fault.rank, ":5:", fault.place,
                                           ":", fault.kind)}});
  EXPECT_EQ(end.exit_code, fault.exit_code) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("worker 0 parks up to "));
  EXPECT_THAT(end.errors, HasSubstr(absl::StrCat("siphon: worker ", fault.rank, " ")));
  EXPECT_THAT(end.errors, HasSubstr(absl::StrCat(" during ", fault.place, "\n")));
  if (fault.workers == Workers::kOnOneDevice) {
    EXPECT_THAT(end.errors, HasSubstr(" --share_gpu --set checkpoint.resume=auto\n"));
  }
  EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
  ExpectNothingLeft();
  EXPECT_EQ(RunCheckpoint("run", 4), ExpectedCheckpoint(4));

  const ProgramEnd next = Siphon(Parking("checkpoint.resume=auto"));
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(
    OfLendersAndOwners, FaultsWhileParked,
    testing::Values(ParkedFault{"LenderKilled", "kill", 3, "3B0", 5},
                    ParkedFault{"LenderStopped", "stop", 2, "2F1", 5},
                    ParkedFault{"OwnerKilledWhileItTakesBack", "kill", 0, "0SWAP_IN0.0", 5},
                    ParkedFault{"OwnerFailsWhileItSends", "fail", 0, "0SWAP_OUT_END2.0", 1}),
    [](const auto& info) { return info.param.name; });

#ifdef SIPHON_DEVICE_PROGRAM
INSTANTIATE_TEST_SUITE_P(
    OnDevices, FaultsWhileParked,
    testing::Values(ParkedFault{"LenderKilled", "kill", 3, "3B0", 5, Workers::kOnADeviceEach},
                    ParkedFault{"LenderStopped", "stop", 2, "2F1", 5, Workers::kOnOneDevice},
                    ParkedFault{"OwnerKilledWhileItTakesBack", "kill", 0, "0SWAP_IN.3", 5,
                                Workers::kOnADeviceEach}),
    [](const auto& info) { return info.param.name; });

// A device breaks: every call there fails from then on.
TEST_F(ParkedFaults, ABrokenDeviceIsNamedWithWhatToDoAndAllEnd) {
  UseDevices(Workers::kOnADeviceEach);
  const ProgramEnd whole = Siphon(Parking("checkpoint.resume=none"));
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  const int64_t events = LeastBefore(" events\n", whole.errors);
  ASSERT_GT(events, 12);

  struct Breakage {
    int rank;
    const char* code;
    const char* says;  // regular expression
  };
  for (const Breakage& breakage :
       {Breakage{0, "214", "cudaErrorECCUncorrectable \\(214\\).*nvidia-smi -q -d ECC"},
        Breakage{3, "700", "cudaErrorIllegalAddress \\(700\\).*CUDA_LAUNCH_BLOCKING"}}) {
    SCOPED_TRACE(breakage.code);
    fs::remove_all(PathOf("run"));
    const ProgramEnd end =
        Siphon(Parking("checkpoint.resume=none"),
               {.environment = {absl::StrCat("SIPHON_BROKEN_RANK=", breakage.rank),
                                absl::StrCat("SIPHON_FAKE_CUDA_FAIL_RECORD=", events / 2),
                                absl::StrCat("SIPHON_FAKE_CUDA_FAIL_CODE=", breakage.code)}});
    EXPECT_EQ(end.exit_code, 1) << end.errors;
    EXPECT_THAT(end.errors,
                testing::ContainsRegex(absl::StrCat(
                    "siphon: worker ", breakage.rank, " failed \\(rank ", breakage.rank,
                    ", pid [0-9]+\\) during [^\n]+\n  cause: INTERNAL: [^\n]*"
                    "device ",
                    breakage.rank, " does no more for this process, since ", breakage.says)));
    EXPECT_THAT(end.errors, HasSubstr(" --set memory.check=full --set checkpoint.resume=auto\n"));
    EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
    ExpectNothingLeft();
    EXPECT_EQ(RunCheckpoint("run", 2), ExpectedCheckpoint(2));

    const ProgramEnd next = Siphon(Parking("checkpoint.resume=auto"));
    EXPECT_EQ(next.exit_code, 0) << next.errors;
    EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  }
}
#endif

// A copy of worker 0 that fails, early and late in the run. (tests/pipeline/synthetic lets each
// copy of a smaller run fail.)
class CopyFaults : public ParkedFaults, public testing::WithParamInterface<int> {};

TEST_P(CopyFaults, EndTheJobWithAReportAndItGoesOnFromTheLastCheckpoint) {
  const ProgramEnd end = Siphon(
      Parking("checkpoint.resume=none"),
      {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=0:0:chunk ", GetParam(), ":fail")}});
  EXPECT_EQ(end.exit_code, 1) << end.errors;
  EXPECT_THAT(end.errors, testing::ContainsRegex(absl::StrCat(
                              "siphon: worker 0 (.|\n)*copy (out|in), link [0-9], chunk [0-9]+ "
                              "\\([0-9]+ bytes\\): injected fault at chunk ",
                              GetParam(), "\n")));
  EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
  ExpectNothingLeft();

  const ProgramEnd next = Siphon(Parking("checkpoint.resume=auto"));
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(Chunks, CopyFaults, testing::Values(0, 7, 50));

struct LeftParking {
  const char* name;
  const char* strategy;
  const char* fault;
  const char* says;  // regular expression
};
void PrintTo(const LeftParking& left, std::ostream* out) { *out << left.name; }

class ParkingThatIsLeft : public ParkedFaults, public testing::WithParamInterface<LeftParking> {
 protected:
  std::vector<std::string> Leaving(const std::string& more) const {
    std::vector<std::string> arguments = Parking(more, GetParam().strategy, "1405KiB");
    // Copies to lenders then take some milliseconds, longer than a busy machine holds one up.
    const bool to_lenders = absl::string_view(GetParam().strategy) == "d2d_swap";
    // Where lenders are reached fastest they are workers; elsewhere devices without one do as well.
    for (const char* set :
         {"topology.name=dgx1_v100", "topology.map_score=swap_time", "memory.replan=false",
          to_lenders ? "topology.throttle=0.0003" : "topology.throttle=0.001"}) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return arguments;
  }
};

// The run ends as if nothing had been, and each of its checkpoints is good for another run.
TEST_P(ParkingThatIsLeft, TrainsOnWithItsSecondChoice) {
  const LeftParking& left = GetParam();
  const ProgramEnd end =
      Siphon(Leaving("checkpoint.resume=none"),
             {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", left.fault)}});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("worker 0 parks up to "));
  EXPECT_THAT(end.errors, testing::ContainsRegex(absl::StrCat("warning: worker 0: ", left.says)));
  ExpectNothingLeft();
  for (const int step : {4, 8, 12}) {
    EXPECT_EQ(RunCheckpoint("run", step), ExpectedCheckpoint(step)) << "step " << step;
  }

  std::vector<std::string> again = Leaving("checkpoint.resume=" + CheckpointPath("run", 8));
  again.insert(again.end(), {"--set", "output.directory=" + PathOf("again")});
  const ProgramEnd next = Siphon(again);
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_THAT(next.errors, testing::Not(HasSubstr("warning")));
  EXPECT_EQ(RunCheckpoint("again", 12), ExpectedCheckpoint(12));
}

// With the host: a strategy that parks activations alone, which can be computed again.
INSTANTIATE_TEST_SUITE_P(
    OfLendersAndTheHost, ParkingThatIsLeft,
    testing::Values(
        LeftParking{"LeaseRefused", "d2d_swap", "3:0:lending memory:refuse",
                    "worker 3 does not lend its memory: .* from step 1 on"},
        LeftParking{"LeaseTakenBack", "d2d_swap", "3:5:lending memory:refuse",
                    "worker 3 does not lend its memory: .* from step 7 on"},
        LeftParking{"HostMemoryRefused", "capacity_based", "0:0:taking host memory:refuse",
                    "the host does not give the memory that is planned: .* computed again from "
                    "step 1 on"},
        LeftParking{"LinkToALenderSlow", "d2d_swap", "0:3:worker 3:slow",
                    "the link to worker 3 is [0-9.]+x slower than planned: .* from step "},
        LeftParking{"LinkToTheHostSlow", "capacity_based", "0:3:the host:slow",
                    "the link to the host is [0-9.]+x slower than planned: .* computed again from "
                    "step "}),
    [](const auto& info) { return info.param.name; });

// Slow as a machine can make it: for a second it does nothing at all.
TEST_F(ParkedFaults, ALenderThatStandsStillForAWhileIsWaitedFor) {
  const ProgramEnd end = Siphon(
      Parking("checkpoint.resume=none"),
      {.environment = {"SIPHON_INJECT_FAULT=3:5:3B0:stop"}, .meanwhile = [this](pid_t program) {
         const auto lender = WaitForStopped(program);
         ASSERT_TRUE(lender.has_value());
         std::this_thread::sleep_for(std::chrono::seconds(1));
         kill(lender->pid, SIGCONT);
       }});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// Runs one hundredth of the time while three seconds pass, its heart as slow as all else.
TEST_F(ParkedFaults, ALenderThatIsAHundredTimesSlowerForAWhileIsWaitedFor) {
  constexpr std::chrono::milliseconds kRuns(1), kStands(99);
  int turns = 0;
  const ProgramEnd end =
      Siphon(Parking("checkpoint.resume=none"),
             {.environment = {"SIPHON_INJECT_FAULT=3:5:3B0:stop"}, .meanwhile = [&](pid_t program) {
                const auto lender = WaitForStopped(program);
                ASSERT_TRUE(lender.has_value());
                const auto begin = std::chrono::steady_clock::now();
                while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(3) &&
                       kill(lender->pid, SIGCONT) == 0) {
                  std::this_thread::sleep_for(kRuns);
                  if (kill(lender->pid, SIGSTOP) != 0) break;
                  ++turns;
                  std::this_thread::sleep_for(kStands);
                }
                kill(lender->pid, SIGCONT);
              }});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_GT(turns, 1);
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// So little memory that worker 0 cannot compute again what it has no room for, and the others have
// a few kilobytes more than they need.
constexpr char kNothingToSpare[] = "[1370KiB,326KiB,396KiB,1240KiB]";

TEST_F(ParkedFaults, MemoryThatIsRefusedWithoutASecondChoiceEndsTheJobWithAReport) {
  const ProgramEnd end =
      Siphon(Parking("checkpoint.resume=none", "host_swap", kNothingToSpare),
             {.environment = {"SIPHON_INJECT_FAULT=0:0:taking host memory:refuse"}});
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors, testing::ContainsRegex("siphon: worker 0 .* during taking host memory"));
  EXPECT_THAT(end.errors, HasSubstr("are with host_swap, and the plan has no second choice"));
  EXPECT_LT(end.seconds, kLimitSeconds);
  ExpectNothingLeft();
}

// Others on the machine have taken all of it between the plan and the start.
TEST_F(ParkedFaults, AnExhaustedHostPoolIsLeftForSecondChoices) {
  std::vector<std::string> arguments =
      Parking("memory.host_capacity=64MiB", "capacity_based", "1405KiB");
  const ProgramEnd end =
      Siphon(arguments, {.environment = {"SIPHON_INJECT_FAULT=0:0:the host:full"}});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors,
              testing::ContainsRegex("warning: worker 0: the host does not give the memory that "
                                     "is planned: .* computed again from step 1 on"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

// Training state among it, which nobody computes again.
TEST_F(ParkedFaults, AnExhaustedHostPoolIsLeftForLenders) {
  const ProgramEnd end = Siphon(Parking("memory.host_capacity=64MiB", "host_swap", "1370KiB"),
                                {.environment = {"SIPHON_INJECT_FAULT=0:0:the host:full"}});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors,
              HasSubstr("warning: worker 0: host memory exhausted: parked tensors need "));
  EXPECT_THAT(end.errors,
              testing::ContainsRegex("warning: worker 0: the host does not give the memory that "
                                     "is planned: .* go to other workers from step 1 on"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
}

TEST_F(ParkedFaults, AnExhaustedHostPoolWithoutASecondChoiceEndsTheJobWithAReport) {
  for (const auto& [strategy, capacity] :
       {std::pair("host_swap", kNothingToSpare), std::pair("optimizer_offload", "1390KiB")}) {
    SCOPED_TRACE(strategy);
    const ProgramEnd end = Siphon(Parking("memory.host_capacity=64MiB", strategy, capacity),
                                  {.environment = {"SIPHON_INJECT_FAULT=0:0:the host:full"}});
    EXPECT_EQ(end.exit_code, 3) << end.errors;
    EXPECT_THAT(end.errors, testing::ContainsRegex("siphon: worker 0 .* during taking host "
                                                   "memory\n  cause: .*host memory exhausted: "
                                                   "[a-z ]+ need [0-9.]+ [KM]iB, and of 64.0 MiB "
                                                   "all workers together have taken "));
    EXPECT_LT(end.seconds, kLimitSeconds);
    ExpectNothingLeft();
  }
}

// With a drive the steps' memory is a file there.
TEST_F(ParkedFaults, AnExhaustedHostPoolIsLeftForAFileOnTheDrive) {
  std::vector<std::string> arguments =
      Parking("memory.host_capacity=64MiB", "optimizer_offload", "1390KiB");
  arguments.insert(arguments.end(), {"--set", "memory.nvme_directory=" + PathOf("drive")});
  const ProgramEnd end =
      Siphon(arguments, {.environment = {"SIPHON_INJECT_FAULT=0:0:the host:full"}});
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("host memory exhausted: optimizer steps need "));
  EXPECT_THAT(end.errors,
              testing::ContainsRegex("warning: worker 0: the host does not give the memory that "
                                     "is planned: [0-9]+ groups? go(es)? to the drives from step "
                                     "1 on"));
  EXPECT_EQ(RunCheckpoint("run", 12), ExpectedCheckpoint(12));
  ExpectNothingLeft();
  std::filesystem::remove_all(PathOf("drive"));
}

TEST_F(ParkedFaults, AHostWithTooLittleMemoryIsRefusedBeforeTheStart) {
  const ProgramEnd end = Siphon(Parking("memory.host_capacity=1KiB", "host_swap"));
  EXPECT_EQ(end.exit_code, 3) << end.errors;
  EXPECT_THAT(end.errors, HasSubstr("memory.strategy host_swap is not enough"));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
