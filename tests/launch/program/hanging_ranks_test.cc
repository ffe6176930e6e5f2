// Ranks in which a call never comes back while their heartbeats go on (SIPHON_INJECT_FAULT): by
// launch.stall_timeout the job ends with a report that names them, and nothing is left.

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

constexpr double kLimitSeconds = 10;  // from the hang to the end of the job

struct Hang {
  int rank = 0;
  std::string at;  // STEP:PLACE
  std::string place;
};

// GoogleTest would print addresses, which CTest takes for a part of the test's name.
void PrintTo(const Hang& hang, std::ostream* out) { *out << hang.place; }

class HangingRanks : public TinyJobTest, public testing::WithParamInterface<Hang> {};

TEST_P(HangingRanks, EndTheJobWithAReportThatNamesThem) {
  const Hang& hang = GetParam();
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "launch.stall_timeout=1500ms"},
             {.environment = {absl::StrCat("SIPHON_INJECT_FAULT=", hang.rank, ":", hang.at, ":",
                                           hang.place, ":hang")}});
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_LT(end.seconds_since_last_step, kLimitSeconds);
  EXPECT_THAT(end.errors, EndsWithRegex(absl::StrCat(
                              "siphon: worker ", hang.rank, " was lost \\(rank ", hang.rank,
                              ", pid [0-9]+, no worker has begun anything for 1.50 s, and all "
                              "wait for it\\) during ",
                              hang.place, "\n  the job ended .*\n(  continue with: .*\n)?")));
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(
    Places, HangingRanks,
    testing::Values(Hang{1, "0", "1F0"}, Hang{3, "5", "3B1"}, Hang{0, "5", "0STEP"},
                    Hang{2, "6", "writing a checkpoint"}, Hang{0, "0", "making its stages"}),
    [](const auto& info) { return absl::StrCat("Rank", info.param.rank, "Of", info.index); });

}  // namespace
}  // namespace siphon
