#include "launch/run/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  return parsed.ok() ? "parsed" : std::string(parsed.status().message());
}

TEST(CommandLine, TakesTheJobAsAnArgumentOrAsConfig) {
  const auto plain = ParseCommandLine({"train", "job.yaml", "--set", "train.steps=3"});
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto& train = std::get<TrainArguments>(*plain);
  EXPECT_EQ(train.job, "job.yaml");
  EXPECT_EQ(train.overrides, std::vector<std::string>{"train.steps=3"});
  const auto config = ParseCommandLine({"train", "--config", "job.yaml"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(std::get<TrainArguments>(*config).job, "job.yaml");
}

TEST(CommandLine, RepeatsSetAndKeepsTheOrder) {
  const auto parsed = ParseCommandLine({"train", "--set", "a.b=1", "j", "--set", "a.b=2"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(std::get<TrainArguments>(*parsed).overrides,
            (std::vector<std::string>{"a.b=1", "a.b=2"}));
}

TEST(CommandLine, UnderstandsHyphensInFlags) {
  const auto parsed =
      ParseCommandLine({"generate", "--checkpoint", "c", "--prompt", "a-b", "--top-k", "5"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& options = std::get<GenerateArguments>(*parsed).options;
  EXPECT_EQ(options.top_k, 5);
  EXPECT_EQ(options.prompt, "a-b");
}

TEST(CommandLine, NamesTheNearestFlagAndCommand) {
  EXPECT_EQ(ErrorOf({"train", "j", "--fromat", "json"}),
            "train: unknown argument '--fromat'; did you mean '--format'? see siphon train --help");
  EXPECT_THAT(ErrorOf({"trian"}),
              StartsWith("unknown command 'trian'; did you mean 'train'? known: train, generate"));
}

TEST(CommandLine, SaysThatEachSettingWantsASet) {
  for (const char* command : {"train", "plan"}) {
    EXPECT_EQ(ErrorOf({command, "j", "--set", "a.b=1", "c.d=2"}),
              std::string(command) + ": unknown argument 'c.d=2'; write --set before each setting");
    const auto help = ParseCommandLine({command, "--help"});
    ASSERT_TRUE(help.ok());
    EXPECT_THAT(std::get<Answered>(*help).text, HasSubstr("--set KEY=VALUE  "));
  }
}

TEST(CommandLine, WantsAJobFile) {
  EXPECT_EQ(ErrorOf({"train"}), "train: no job file given; siphon train JOB.yaml");
}

TEST(CommandLine, HelpListsEveryCommandAndTrainHelpEveryKey) {
  const auto help = ParseCommandLine({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_NE(std::get<Answered>(*help).text.find("generate"), std::string::npos);
  const auto train = ParseCommandLine({"train", "--help"});
  ASSERT_TRUE(train.ok());
  const std::string& text = std::get<Answered>(*train).text;
  for (const char* key : {"threads_per_worker", "clip_norm", "heartbeat_timeout", "every_steps"}) {
    EXPECT_NE(text.find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace siphon
