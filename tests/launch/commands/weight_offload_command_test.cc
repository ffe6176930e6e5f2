#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/commands/weight_offload_report.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WeightOffloadCommand : public CommandTest {};

// The whole table is looked at in tests/launch/program: it takes minutes under sanitizers.
TEST_F(WeightOffloadCommand, PrintsChosenRowsOfTable1) {
  const CommandEnd end = RunRegisteredCommand(
      "weight_offload", {"--network", "GPT-2", "--depth", "38", "--batch", "64"});
  ASSERT_EQ(end.code, kExitDone) << end.err;
  EXPECT_THAT(
      end.out,
      StartsWith(
          R"(Table 1 of the weight offloading paper (hal-03580767): ms a step, 12 GB/s each way; ours simulated, "paper" as published

network  depth  batch  compute    ILP  paper  bound  trimmed  gap %   auto  gap %  greedy  paper  greedy*  paper    L2L  paper
GPT-2       38     64    23694  23694  23694  23694    23694    0.0  23938    1.0   23694  23838    23694  23838  26387  26387

)"));
  EXPECT_THAT(end.out, HasSubstr("\nAuto: siphon's planner of pipelines on the row as one stage"));
  EXPECT_THAT(end.out, HasSubstr("\nASSUMED: blocks share the compute time equally"));
}

TEST(WeightOffloadTableJson, HasPublishedAndCalculatedSecondsOfARow) {
  const auto row = FindWeightOffloadRow("GPT-2", 38, 16);
  ASSERT_TRUE(row.ok()) << row.status();
  const auto times = CompareWeightOffload(PublishedWeightOffload(*row, 12));
  ASSERT_TRUE(times.ok()) << times.status();
  const auto json =
      nlohmann::json::parse(WeightOffloadTableJson({{*row, *times, Nanos(6'000'000'000)}}));
  ASSERT_EQ(json["rows"].size(), 1u);
  const auto& printed = json["rows"][0];
  EXPECT_EQ(printed["network"], "GPT-2");
  EXPECT_NEAR(printed["layer_to_layer_seconds"].get<double>(), 8.487, 0.001);
  EXPECT_NEAR(printed["greedy_seconds"].get<double>(), 5.866, 0.001);
  EXPECT_NEAR(printed["trimmed_greedy_seconds"].get<double>(), 5.794, 0.001);
  EXPECT_NEAR(printed["integer_program"]["seconds"].get<double>(), 5.794, 1e-6);
  EXPECT_EQ(printed["integer_program"]["search"], "whole");
  EXPECT_EQ(printed["gap"], 0);
  EXPECT_EQ(printed["auto_seconds"], 6.0);
  EXPECT_NEAR(printed["auto_gap"].get<double>(), 6 / 5.794 - 1, 1e-6);
  EXPECT_EQ(printed["published"]["greedy_seconds"], 5.902);
  EXPECT_EQ(printed["published"]["greedy_without_discount_seconds"], 5.934);
  EXPECT_EQ(json["assumptions"].size(), 3u);
}

TEST_F(WeightOffloadCommand, PrintsAndDrawsFigure4) {
  const std::string path = directory_ + "/figure.svg";
  const CommandEnd end = RunRegisteredCommand(
      "weight_offload", {"--figure", "4", "--svg", path, "--depth", "38", "--batch", "64"});
  ASSERT_EQ(end.code, kExitDone) << end.err;
  EXPECT_THAT(end.out, StartsWith("Figure 4: Weight offloading against link throughput\n"
                                  "GPT-2 depth 38 batch 64, V100 16 GB, calculated\n"));
  EXPECT_THAT(end.out, HasSubstr("greedy: less than 1 % idle from 2 GB/s on."));
  EXPECT_THAT(end.out, HasSubstr("The integer program of section 6: its minimum at "));
  std::ifstream stream(path);
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(svg, HasSubstr("Weight offloading against link throughput"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST_F(WeightOffloadCommand, NamesTheFlagThatIsWrong) {
  const CommandEnd figure = RunRegisteredCommand("weight_offload", {"--figure", "3"});
  EXPECT_EQ(figure.code, kExitBadInput);
  EXPECT_EQ(figure.err,
            "siphon: --figure: only figure 4 of the weight offloading paper is calculated\n");
  const CommandEnd zero = RunRegisteredCommand("weight_offload", {"--figure", "0"});
  EXPECT_EQ(zero.code, kExitBadInput);
  EXPECT_EQ(zero.err, figure.err);
  const CommandEnd row =
      RunRegisteredCommand("weight_offload", {"--figure", "4", "--network", "Bert"});
  EXPECT_EQ(row.code, kExitBadInput);
  EXPECT_THAT(row.err, StartsWith("siphon: --network, --depth, --batch: Table 1 has no row Bert "
                                  "depth 74 batch 64; it has GPT-2 depth 74 batch 64, "));
  const CommandEnd none = RunRegisteredCommand("weight_offload", {"--depth", "39"});
  EXPECT_EQ(none.code, kExitBadInput);
  EXPECT_THAT(none.err, StartsWith("siphon: --network, --depth, --batch: Table 1 has no row GPT-2 "
                                   "depth 39 batch 64; it has GPT-2 depth 74 batch 64, "));
  const CommandEnd svg = RunRegisteredCommand("weight_offload", {"--svg", "x.svg"});
  EXPECT_EQ(svg.code, kExitBadInput);
  EXPECT_EQ(svg.err, "siphon: --svg: only a figure is drawn; add --figure 4\n");
}

}  // namespace
}  // namespace siphon
