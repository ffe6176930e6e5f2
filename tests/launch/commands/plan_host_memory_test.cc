#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_study.h"
#include "launch/commands/plan_tables.h"
#include "launch/process/exit_codes.h"
#include "planner/placement_bytes.h"
#include "planner/units.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/launch/commands/run_command.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What is at the host at different times is more in sum than ever at once.
TEST_F(PlanCommand, SaysWhatOfTheHostIsAtOnceAndWhatInSum) {
  const std::string job = Write(kSmallJob);
  auto studied =
      StudyPlan({.job = {.job = job, .overrides = {Capacity(job, 80)}}, .strategy = "host_swap"});
  ASSERT_TRUE(studied.ok()) << studied.status();
  ASSERT_TRUE(studied->step.has_value());
  const Bytes sum = Sum(BytesByPlacement(studied->plan))[static_cast<size_t>(Placement::kHostSwap)];
  studied->step->host_peak = Bytes(1024);
  EXPECT_EQ(ParkingTable(*studied).rows.back()[3],
            absl::StrCat("1.00 KiB at once, of ", FormatBytes(sum), " in sum"));
  studied->step->host_peak = sum;
  EXPECT_EQ(ParkingTable(*studied).rows.back()[3], FormatBytes(sum));
  studied->step->host_peak = sum + Bytes(2048);
  studied->plan.memory.stages[0].update = UpdatePlace::kHost;
  EXPECT_EQ(
      ParkingTable(*studied).rows.back()[3],
      absl::StrCat(FormatBytes(sum + Bytes(2048)), ", 2.00 KiB of it for optimizer steps there"));
}

TEST_F(PlanCommand, SaysWhatDrivesHold) {
  const std::string job = Write(kSmallJob);
  auto studied =
      StudyPlan({.job = {.job = job, .overrides = {Capacity(job, 80)}}, .strategy = "nvme_swap"});
  ASSERT_TRUE(studied.ok()) << studied.status();
  ASSERT_TRUE(studied->step.has_value());
  ASSERT_EQ(studied->step->other_peaks.size(), 1u);
  const HolderPeak held = studied->step->other_peaks[0];
  ASSERT_EQ(held.name, "drive 0");
  const PageTable table = ParkingTable(*studied);
  // Through the host's memory.
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][2], "host");
  EXPECT_EQ(table.rows[0][3],
            absl::StrCat(FormatBytes(studied->step->host_peak), " for copies on their way"));
  EXPECT_EQ(table.rows[1][2], "drive 0");
  EXPECT_THAT(table.rows[1][3], StartsWith(FormatBytes(held.bytes)));
  studied->step->host_peak = Bytes(0);
  // Two drives in turn, and worker 1 has the second.
  studied->problem.topology.drives.resize(2);
  for (StagePlan& stage : studied->plan.memory.stages) {
    for (auto& [group, choice] : stage.groups) choice = {};
  }
  studied->plan.memory.stages[1].groups[0].choice.placement = Placement::kNvmeSwap;
  const Bytes sum = Sum(BytesByPlacement(studied->plan))[static_cast<size_t>(Placement::kNvmeSwap)];
  studied->step->other_peaks = {{"device 2", Bytes(9)}, {"drive 1", sum}};
  EXPECT_THAT(ParkingTable(*studied).rows,
              ElementsAre(ElementsAre("1", "1", "drive 1", FormatBytes(sum))));
  studied->step->other_peaks[1].bytes = Bytes(1);
  EXPECT_EQ(ParkingTable(*studied).rows[0][3],
            absl::StrCat("1 B at once, of ", FormatBytes(sum), " in sum"));
}

TEST_F(PlanCommand, LimitsTheHost) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes a minute under a sanitizer";
  const std::string job = Write(kSmallJob);
  const std::string capacity = Capacity(job, 80);
  const std::vector<std::string> flags = {
      job, "--set", capacity, "--strategy", "host_swap", "--set", "memory.host_capacity=1kB"};
  const CommandEnd end = Run(flags);
  EXPECT_EQ(end.code, kExitDoesNotFit) << end.out;
}

// Not where in the programs it was refused.
TEST_F(PlanCommand, SaysInOneLineWhatTheHostLacks) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job,
                                          "--strategy",
                                          "vdnn",
                                          "--set",
                                          "topology.name=dgx1_v100",
                                          "--set",
                                          "memory.host_capacity=100KiB",
                                          "--set",
                                          Capacity(job, 50)};
  const auto plan = Json(flags, kExitDoesNotFit);
  EXPECT_THAT(plan["reason"].get<std::string>(),
              testing::MatchesRegex("the host needs .*[KM]iB under vdnn, it has 100 KiB.*"));
  EXPECT_THAT(plan["reason"].get<std::string>(), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace siphon
