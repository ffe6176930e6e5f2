// Kills and stops lenders and owners of the real program while tensors are parked, and looks at
// what is left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

using ::testing::HasSubstr;

constexpr double kLimitSeconds = 10;  // from a fault to the end of the job

struct ParkedFault {
  const char* name;
  const char* kind;
  int rank;
  const char* place;  // in the sixth step
  int exit_code;
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const ParkedFault& fault, std::ostream* out) { *out << fault.name; }

class FaultsWhileParked : public TinyJobTest, public ::testing::WithParamInterface<ParkedFault> {
 protected:
  // Worker 0 parks with all others what it has no room for: all kept, it needs 1.40 MiB.
  std::vector<std::string> Parking(const std::string& more) const {
    return {"train", job(),
            "--set", "memory.strategy=d2d_swap",
            "--set", "memory.capacity=1390KiB",
            "--set", "memory.check=full",
            "--set", more};
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
    ::testing::Values(ParkedFault{"LenderKilled", "kill", 3, "3B0", 5},
                      ParkedFault{"LenderStopped", "stop", 2, "2F1", 5},
                      ParkedFault{"OwnerKilledWhileItTakesBack", "kill", 0, "0SWAP_IN0.0", 5},
                      ParkedFault{"OwnerFailsWhileItSends", "fail", 0, "0SWAP_OUT_END2.0", 1}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace siphon
