#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/out_of_core_report.h"
#include "launch/process/exit_codes.h"
#include "planner/performance/published_figures.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::HasSubstr;

class OutOfCoreCommand : public CommandTest {
 protected:
  static CommandEnd Run(std::vector<std::string> flags) {
    return RunRegisteredCommand("out_of_core", std::move(flags));
  }
};

TEST_F(OutOfCoreCommand, ComparesTheStrategiesOnABatchThatDoesNotFit) {
  const CommandEnd end = Run({"--model", "resnet50", "--device", "V100", "--batch", "256", "--link",
                              "12GB/s", "--format", "json"});
  ASSERT_EQ(end.code, kExitDone) << end.err;
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_EQ(json["out_bytes_per_second"], 12'000'000'000);
  EXPECT_EQ(json["strategies"]["in_memory"]["fits"], false);
  const auto seconds = [&](const char* name) -> double {
    return json["strategies"][name]["step_seconds"];
  };
  EXPECT_LT(seconds("capacity_based"), seconds("unified_memory_prefetch"));
  EXPECT_LT(seconds("unified_memory_prefetch"), seconds("unified_memory"));
  EXPECT_LT(seconds("capacity_based"), seconds("vdnn"));
  EXPECT_GT(json["saved_bytes"], json["capacity_bytes"]);
}

TEST_F(OutOfCoreCommand, SaysThatABatchThatFitsNeedsNoSwapping) {
  const CommandEnd end = Run({"--model", "vgg16", "--batch", "32"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  EXPECT_THAT(end.out, HasSubstr("The batch fits in near memory: swap nothing."));
  EXPECT_THAT(end.out, HasSubstr("capacity-based"));
}

TEST_F(OutOfCoreCommand, SlowFarMemoryCountsOnlyBelowTheLink) {
  const auto rate = [](const std::string& far) -> int64_t {
    const CommandEnd end = Run({"--link", "12GB/s", "--far_memory", far, "--format", "json"});
    EXPECT_EQ(end.code, kExitDone) << end.err;
    return nlohmann::json::parse(end.out)["in_bytes_per_second"];
  };
  EXPECT_EQ(rate("60GB/s"), 12'000'000'000);
  EXPECT_EQ(rate("2GB/s"), 2'000'000'000);
}

TEST_F(OutOfCoreCommand, DrawsAFigure) {
  const std::string path = directory_ + "/figure.svg";
  const CommandEnd end = Run({"--figure", "8", "--output", path, "--format", "json"});
  ASSERT_EQ(end.code, kExitDone) << end.err;
  EXPECT_EQ(nlohmann::json::parse(end.out)["series"].size(), 3u);
  const std::string svg = FileText("figure.svg");
  EXPECT_THAT(svg, HasSubstr("Time against link throughput"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST_F(OutOfCoreCommand, EveryFigureIsATableWithItsFindings) {
  for (const int number : PublishedFigureNumbers()) {
    const CommandEnd end = Run({"--figure", absl::StrCat(number)});
    EXPECT_EQ(end.code, kExitDone) << end.err;
    EXPECT_THAT(end.out, HasSubstr(absl::StrCat("Figure ", number, ": ")));
    EXPECT_THAT(end.out, HasSubstr(PublishedFigure(number)->findings.back()));
  }
}

// The text of Figure 8 of the out-of-core paper as we calculate it: falls with link throughput,
// then stops.
TEST_F(OutOfCoreCommand, PrintsFigure8) {
  EXPECT_EQ(FigureText(*PublishedFigure(8)),
            R"(Figure 8: Time against link throughput
VGG16, batch 256 (ASSUMED; it does not fit), fp32, V100 16 GB, calculated
time / time with all in memory

link throughput (GB/s each way)  vDNN-like  vDNN++-like  capacity-based
2                                    7.321        7.321           4.975
3                                    4.913        4.882           3.412
4                                    3.729        3.663           2.653
6                                    2.613        2.443           1.926
8                                    2.085        1.833           1.611
12                                   1.597        1.412           1.325
16                                   1.383        1.204           1.202
24                                   1.212        1.115           1.115
32                                   1.139        1.074           1.074
48                                   1.085        1.045           1.045
64                                   1.060        1.031           1.031
96                                   1.034        1.018           1.018
128                                  1.021        1.011           1.011
192                                  1.009        1.004           1.004
256                                  1.002        1.001           1.001

vDNN-like: from 7.32 at 2 GB/s to 1.00, within 1 % of which it is from 192 GB/s on.
vDNN++-like: from 7.32 at 2 GB/s to 1.00, within 1 % of which it is from 192 GB/s on.
capacity-based: from 4.97 at 2 GB/s to 1.00, within 1 % of which it is from 192 GB/s on.
More throughput than that buys nothing; below it, throughput sets the time.
)");
}

TEST_F(OutOfCoreCommand, NamesTheFlagOrTheMemoryThatIsWrong) {
  EXPECT_EQ(Run({"--device", "B200"}).code, kExitBadInput);
  EXPECT_EQ(Run({"--figure", "6"}).code, kExitBadInput);
  EXPECT_EQ(Run({"--figure", "0"}).code, kExitBadInput);
  EXPECT_THAT(Run({"--link", "12GB"}).err, HasSubstr("--link: '12GB' has the unknown unit"));
  EXPECT_THAT(Run({"--link", "0GB/s"}).err, HasSubstr("--link: '0GB/s' must be more than 0"));
  EXPECT_THAT(Run({"--output", "x.svg"}).err, HasSubstr("add --figure"));
  for (const std::string flag : {"--layers", "--hidden", "--heads", "--sequence_length"}) {
    const CommandEnd fixed = Run({"--model", "resnet50", flag, "8"});
    EXPECT_EQ(fixed.code, kExitBadInput) << flag;
    EXPECT_EQ(fixed.err, "siphon: " + flag +
                             ": resnet50 is always of the same layers; leave it out, or take "
                             "--model gpt, bert, mlp\n");
    EXPECT_EQ(Run({"--model", "gpt", flag, "16", "--batch", "1"}).code, kExitDone) << flag;
  }
  EXPECT_THAT(Run({"--batch", "0"}).err, HasSubstr("microbatch 0 must be at least 1"));
  const CommandEnd too_small = Run({"--capacity", "1GB"});
  EXPECT_EQ(too_small.code, kExitDoesNotFit);
  EXPECT_THAT(too_small.err, HasSubstr("nothing is left for saved tensors"));
}

}  // namespace
}  // namespace siphon
