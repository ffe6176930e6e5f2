#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/step_grid_text.h"
#include "launch/process/exit_codes.h"
#include "pipeline/schedules/build_schedule.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::HasSubstr;

class ScheduleCommand : public CommandTest {
 protected:
  // The exit code; what it printed is in out_ and error_.
  int Run(std::vector<std::string> flags) {
    const CommandEnd end = RunRegisteredCommand("schedule", std::move(flags));
    out_ = end.out;
    error_ = WithoutDirectory(end.err);
    return end.code;
  }

  std::string File(absl::string_view text) const { return WriteFile("schedule.csv", text); }

  std::string out_;
  std::string error_;
};

TEST_F(ScheduleCommand, DrawsTheStepsOfASchedule) {
  ASSERT_EQ(Run({"--name", "1f1b", "--workers", "2", "--microbatches", "3"}), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("2 workers, 2 stages, 3 microbatches\n"
                              "\n"
                              "         0              5              10\n"
                              "worker 0 F0 F1 .  .  B0### F2 B1### .  B2###\n"
                              "worker 1 .  F0 B0### F1 B1### F2 B2### .  .\n"
                              "\n"
                              "F forward   B backward   . idle\n"
                              "\n"
                              "steps                12  "));
  EXPECT_THAT(out_, HasSubstr("bubble_fraction      25.0 %"));
  EXPECT_THAT(out_, HasSubstr("inner_idle_fraction  12.5 %"));
  EXPECT_THAT(out_, HasSubstr("worker  stages  inner idle  peak live activations\n"
                              "0            0           3                      2\n"
                              "1            1           0                      1\n"));
}

TEST_F(ScheduleCommand, FoldsLongSchedulesAndMarksWhatBelongsTogether) {
  ASSERT_EQ(Run({"dualpipev", "--workers", "2", "--microbatches", "4", "--columns", "70"}),
            kExitDone)
      << error_;
  EXPECT_THAT(out_,
              HasSubstr("         0                   5                   10\n"
                        "worker 0 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3+3B1#### 3F2+0B0#### 3B2####\n"
                        "worker 1 .   1F0 2F0 1F1 2F1 1F2 2B0#### 2F2+1B0#### 1F3+2B1#### 2F3+\n"
                        "\n"
                        "         15                  20\n"));
  EXPECT_THAT(out_, HasSubstr("+ both may run at the same time"));
}

TEST_F(ScheduleCommand, ShowsUpdatesAndWeightVersions) {
  ASSERT_EQ(Run({"pipedream", "--workers", "2", "--microbatches", "3", "--depth", "2,1"}),
            kExitDone)
      << error_;
  EXPECT_THAT(out_, HasSubstr("worker 0 F0 F1 .  .  B0###^F2 B1###^.  B2###^\n"));
  EXPECT_THAT(out_, HasSubstr("^ an update of weights follows"));
  EXPECT_THAT(out_,
              HasSubstr("peak live activations  weight versions\n"
                        "0            0           3                      2                2\n"
                        "1            1           0                      1                1\n"));
}

TEST_F(ScheduleCommand, GivesProgramsAndFiguresAsJson) {
  ASSERT_EQ(Run({"--name", "zbv", "--workers", "2", "--microbatches", "3", "--format", "json"}),
            kExitDone)
      << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["programs"][1][1], "2F0");
  EXPECT_EQ(json["programs"][1].size(), 18u);
  EXPECT_EQ(json["worker_of_stage"], (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(json["steps"], 19);
  EXPECT_DOUBLE_EQ(json["bubble_fraction"], 1.0 / 19);
  EXPECT_EQ(json["inner_idle_fraction"], 0.0);
  EXPECT_EQ(json["peak_live_activations"], (std::vector<int>{4, 4}));
  EXPECT_EQ(json["weight_versions"], (std::vector<int>{1, 1, 1, 1}));
  EXPECT_FALSE(json.contains("steps_with_messages"));
}

TEST_F(ScheduleCommand, AddsTheMessages) {
  ASSERT_EQ(Run({"gpipe", "--workers", "2", "--microbatches", "1", "--communication"}), kExitDone)
      << error_;
  EXPECT_THAT(out_, HasSubstr("steps with messages  6  "));
  EXPECT_THAT(out_, HasSubstr("programs with messages\n"
                              "worker 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
                              "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0\n"));
  ASSERT_EQ(
      Run({"gpipe", "--workers", "2", "--microbatches", "1", "--communication", "--format", "csv"}),
      kExitDone);
  EXPECT_EQ(out_, "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
}

// As torch.distributed.pipelining merges and lowers the same schedule (its test_csv, zb1p).
TEST_F(ScheduleCommand, MergesBackwardsBeforeItAddsMessages) {
  ASSERT_EQ(Run({"interleaved_zero_bubble", "--workers", "2", "--chunks", "2", "--microbatches",
                 "8", "--merge_backward", "--communication", "--format", "json"}),
            kExitDone)
      << error_;
  EXPECT_EQ(nlohmann::json::parse(out_)["steps_with_messages"], 113);
  ASSERT_EQ(Run({"--file", File("0F0,0F1,0I0,0W0,0I1,0F2,0W1,0I2,0W2\n"), "--merge_backward",
                 "--format", "csv"}),
            kExitDone)
      << error_;
  EXPECT_EQ(out_, "0F0,0F1,0B0,0I1,0F2,0W1,0B2\n");
}

TEST_F(ScheduleCommand, RefusesWhatKeepsMoreActivationsThanAllowed) {
  const std::string file = File("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(Run({"--file", file, "--most_live", "2,1"}), kExitDone) << error_;
  EXPECT_EQ(Run({"--file", file, "--most_live", "2"}), kExitDone) << error_;
  EXPECT_EQ(Run({"--file", file, "--most_live", "1"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: DIR/schedule.csv: worker 0 keeps the activations of 2 microbatches from 0F1 "
            "on; its limit is 1\n"
            "worker 0: 0F0 0F1 <-- here 0B0 0F2 0B1 0B2\n"
            "worker 1: 1F0 1B0 1F1 1B1 1F2 1B2\n");
  EXPECT_EQ(out_, "");
  EXPECT_EQ(Run({"--file", file, "--most_live", "1,2,3"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --most_live: 3 numbers, but the schedule has 2 workers; write one number for "
            "all, or one a worker\n");
  EXPECT_EQ(Run({"gpipe", "--workers", "1", "--microbatches", "2", "--most_live", "1"}),
            kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: schedule gpipe: worker 0 keeps the activations of 2 microbatches from 0F1 on; "
            "its limit is 1\n"
            "worker 0: 0F0 0F1 <-- here 0B0 0B1\n");
  EXPECT_EQ(Run({"--all", "--most_live", "1"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --most_live is for one schedule; name it with --name\n");
}

TEST_F(ScheduleCommand, ReadsAFileAndTakesItsShape) {
  ASSERT_EQ(Run({"--file", File("0F0,0F1,0B0,0B1\n,1F0,1B0,1F1,1B1\n"), "--format", "csv"}),
            kExitDone)
      << error_;
  EXPECT_EQ(out_, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST_F(ScheduleCommand, RefusesAFileThatCannotRun) {
  ASSERT_EQ(Run({"--file", File("0F0,0RECV_B0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n")}),
            kExitBadInput);
  EXPECT_EQ(
      error_,
      "siphon: DIR/schedule.csv: deadlock: worker 0 waits in 0RECV_B0 for 1SEND_B0 of worker 1, "
      "which waits in 1RECV_F0 for 0SEND_F0 of worker 0\n"
      "worker 0: 0F0 0RECV_B0 <-- here 0B0 0SEND_F0\n"
      "worker 1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  ASSERT_EQ(Run({"--file", File("0F0,0F1,0B1,0B0\n1F0,1B0,1F1,1B1,1F1\n")}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: DIR/schedule.csv: worker 1 has 1F1 twice\n"
            "worker 0: 0F0 0F1 0B1 0B0\n"
            "worker 1: 1F0 1B0 1F1 1B1 1F1 <-- here\n");
  ASSERT_EQ(Run({"--file", File("0F0,0X0\n")}), kExitBadInput);
  EXPECT_THAT(error_, testing::StartsWith("siphon: DIR/schedule.csv:1:5: action '0X0'"));
  ASSERT_EQ(Run({"--file", File("0F0,0B0\n"), "--microbatches", "2"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: schedule csv: the file is for 1 workers, 1 stages and 1 microbatches, but the "
            "job has 1 workers, 1 stages (1 a worker) and 2 microbatches\n");
  EXPECT_EQ(Run({"--file", directory_ + "/none.csv"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: cannot read schedule 'DIR/none.csv': No such file or directory\n");
}

TEST_F(ScheduleCommand, ListsEveryScheduleWithoutAName) {
  ASSERT_EQ(Run({}), kExitDone) << error_;
  for (const ScheduleEntry& entry : ScheduleRegistry()) {
    EXPECT_THAT(out_, HasSubstr(absl::StrCat("\n", entry.name, " "))) << out_;
    EXPECT_THAT(out_, HasSubstr(entry.summary));
  }
  EXPECT_THAT(out_, HasSubstr("zb_h1 "));
  EXPECT_THAT(out_, HasSubstr("schedule l2l runs on one worker, not 4"));
  ASSERT_EQ(Run({"--all", "--workers", "8", "--microbatches", "32", "--format", "json"}),
            kExitDone);
  const auto json = nlohmann::json::parse(out_)["schedules"];
  ASSERT_EQ(json.size(), ScheduleRegistry().size());
  for (const auto& schedule : json) {
    EXPECT_TRUE(schedule.contains("refused") || schedule["steps"] >= 96) << schedule;
  }
}

TEST_F(ScheduleCommand, NamesWhatIsWrongOnOneLine) {
  EXPECT_EQ(Run({"1f1c"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: unknown schedule '1f1c'; did you mean '1f1b'? siphon schedule --all lists "
            "them\n");
  EXPECT_EQ(Run({"gpipe", "--depth", "2,1"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: schedule gpipe takes no depth; it has no options\n");
  EXPECT_EQ(Run({"gpipe", "--warm_up", "b"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: schedule gpipe takes no warm_up; it has no options\n");
  EXPECT_EQ(Run({"1f1b", "--backward_group", "2"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: schedule 1f1b takes no backward_group; it has no options\n");
  EXPECT_EQ(Run({"harmony_pp", "--microbatches", "4", "--backward_group", "5"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: schedule harmony_pp: backward_group is 5; there are 4 microbatches, so give 1 "
            "to 4\n");
  EXPECT_EQ(Run({"--backward_group", "2"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --backward_group is for one schedule; name it with --name\n");
  EXPECT_EQ(Run({"zbv", "--chunks", "0"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: schedule zbv: 4 workers, 0 chunks and 8 microbatches; each must be at least "
            "1\n");
  EXPECT_EQ(Run({"--in_flight", "3"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --in_flight is for one schedule; name it with --name\n");
  EXPECT_EQ(Run({"csv"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: schedule csv needs a file: --file schedule.csv\n");
  EXPECT_EQ(Run({"1f1b", "--file", "x.csv"}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --file is for schedule csv, not for 1f1b\n");
}

TEST(StepGridText, ColoursActionsButNotTheSignsBetweenThem) {
  const Schedule schedule =
      BuildSchedule("pipedream", {.workers = 1, .microbatches = 1}).value_or(Schedule{});
  const StepGrid grid = DrawStepGrid(schedule).value_or(StepGrid{});
  EXPECT_THAT(StepGridText(schedule, grid, 80, TextColors::kTerminal),
              HasSubstr("worker 0 \x1b[48;5;69m\x1b[38;5;16mF0\x1b[0m "
                        "\x1b[48;5;35m\x1b[38;5;16mB0###\x1b[0m^\n"));
}

}  // namespace
}  // namespace siphon
