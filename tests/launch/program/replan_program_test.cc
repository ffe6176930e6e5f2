// The real program, one process a worker, plans again in the middle of a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "launch/config/read_text_file.h"
#include "tests/launch/program/program_run.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

class ReplanOfProcesses : public TinyJobTest {
 protected:
  std::vector<std::string> Command(const std::string& command,
                                   const std::vector<std::string>& sets) const {
    std::vector<std::string> arguments = {command, "--config", job()};
    for (const char* set : {"model.layers=6", "model.hidden=96", "model.heads=3",
                            "data.sequence_length=12", "checkpoint.every_steps=12"}) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return arguments;
  }

  // What layers take as measured, but for their times: so long that every copy would be hidden; and
  // with nothing known of tensors within layers, whose times are as noisy as the machine.
  std::string SlowProfile() {
    std::vector<std::string> arguments = Command("profile", {});
    arguments.insert(arguments.end(), {"--output", PathOf("profile.yaml")});
    const ProgramEnd end = Siphon(arguments);
    EXPECT_EQ(end.exit_code, 0) << end.errors;
    const auto text = ReadTextFile(PathOf("profile.yaml"), "profile");
    EXPECT_TRUE(text.ok()) << text.status();
    const std::regex times("((forward|recompute|(input|weight|whole)_backward): )[0-9.]+[a-z]+");
    const std::string slow =
        std::regex_replace(text.value_or(""), times, std::string("$01") + "20ms");
    return WriteFile("slow.yaml", std::regex_replace(slow, std::regex(", made_ppm: [0-9]+"), ""));
  }
};

TEST_F(ReplanOfProcesses, EndsWithTheBitsOfTheRunWithoutLimits) {
  ASSERT_EQ(Siphon(Command("train", {"output.directory=" + PathOf("all")})).exit_code, 0);
  const std::string profile = SlowProfile();
  const ProgramEnd end =
      Siphon(Command("train", {"pipeline.profile=" + profile, "topology.name=dgx1_v100",
                               "topology.throttle=0.0001", "memory.check=full",
                               "memory.capacity=[4200000B,12000000B,12000000B,12000000B]"}));
  EXPECT_EQ(end.exit_code, 0) << end.errors;
  EXPECT_THAT(end.errors, testing::HasSubstr("after step 7: re-planned in "));
  const auto metrics = ReadTextFile(PathOf("run") + "/metrics.jsonl", "metrics");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(*metrics, testing::HasSubstr(R"("replans":1)"));
  EXPECT_EQ(RunCheckpoint("run", 12), RunCheckpoint("all", 12));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace siphon
