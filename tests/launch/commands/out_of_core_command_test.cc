#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/command.h"
#include "launch/commands/out_of_core_report.h"
#include "launch/process/exit_codes.h"
#include "planner/performance/published_figures.h"

namespace siphon {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string output;
  std::string errors;
};

Outcome Ran(std::vector<std::string> arguments) {
  CLI::App app;
  RunCommand run;
  for (const CommandEntry& entry : CommandRegistry()) {
    if (entry.name == "out_of_core") run = entry.add(app);
  }
  arguments.insert(arguments.begin(), "out_of_core");
  std::reverse(arguments.begin(), arguments.end());
  app.parse(std::move(arguments));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = run();
  outcome.output = testing::internal::GetCapturedStdout();
  outcome.errors = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(OutOfCoreCommand, ComparesTheStrategiesOnABatchThatDoesNotFit) {
  const Outcome outcome = Ran({"--model", "resnet50", "--device", "V100", "--batch", "256",
                               "--link", "12GB/s", "--format", "json"});
  ASSERT_EQ(outcome.code, kExitDone) << outcome.errors;
  const auto json = nlohmann::json::parse(outcome.output);
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

TEST(OutOfCoreCommand, SaysThatABatchThatFitsNeedsNoSwapping) {
  const Outcome outcome = Ran({"--model", "vgg16", "--batch", "32"});
  EXPECT_EQ(outcome.code, kExitDone) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("The batch fits in near memory: swap nothing."));
  EXPECT_THAT(outcome.output, HasSubstr("capacity-based"));
}

TEST(OutOfCoreCommand, SlowFarMemoryCountsOnlyBelowTheLink) {
  const auto rate = [](const std::string& far) -> int64_t {
    const Outcome outcome = Ran({"--link", "12GB/s", "--far_memory", far, "--format", "json"});
    EXPECT_EQ(outcome.code, kExitDone) << outcome.errors;
    return nlohmann::json::parse(outcome.output)["in_bytes_per_second"];
  };
  EXPECT_EQ(rate("60GB/s"), 12'000'000'000);
  EXPECT_EQ(rate("2GB/s"), 2'000'000'000);
}

TEST(OutOfCoreCommand, DrawsAFigure) {
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("siphon-figure-", getpid(), ".svg"))
          .string();
  const Outcome outcome = Ran({"--figure", "8", "--output", path, "--format", "json"});
  ASSERT_EQ(outcome.code, kExitDone) << outcome.errors;
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["series"].size(), 3u);
  std::ifstream stream(path);
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(path);
  EXPECT_THAT(svg, HasSubstr("Time against link throughput"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(OutOfCoreCommand, EveryFigureIsATableWithItsFindings) {
  for (const int number : PublishedFigureNumbers()) {
    const Outcome outcome = Ran({"--figure", absl::StrCat(number)});
    EXPECT_EQ(outcome.code, kExitDone) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(absl::StrCat("Figure ", number, ": ")));
    EXPECT_THAT(outcome.output, HasSubstr(PublishedFigure(number)->findings.back()));
  }
}

// The text of Figure 8 of the out-of-core paper as we calculate it: falls with link throughput,
// then stops.
TEST(OutOfCoreCommand, PrintsFigure8) {
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

TEST(OutOfCoreCommand, NamesTheFlagOrTheMemoryThatIsWrong) {
  EXPECT_EQ(Ran({"--device", "B200"}).code, kExitBadInput);
  EXPECT_EQ(Ran({"--figure", "6"}).code, kExitBadInput);
  EXPECT_THAT(Ran({"--link", "12GB"}).errors, HasSubstr("--link: '12GB' has the unknown unit"));
  EXPECT_THAT(Ran({"--link", "0GB/s"}).errors, HasSubstr("--link: '0GB/s' must be more than 0"));
  EXPECT_THAT(Ran({"--output", "x.svg"}).errors, HasSubstr("add --figure"));
  EXPECT_THAT(Ran({"--batch", "0"}).errors, HasSubstr("microbatch 0 must be at least 1"));
  const Outcome too_small = Ran({"--capacity", "1GB"});
  EXPECT_EQ(too_small.code, kExitDoesNotFit);
  EXPECT_THAT(too_small.errors, HasSubstr("nothing is left for saved tensors"));
}

}  // namespace
}  // namespace siphon
