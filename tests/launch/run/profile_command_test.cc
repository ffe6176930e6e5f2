#include "launch/run/layer_profile/profile_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/config/read_text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/device_file.h"

namespace siphon {
namespace {

class ProfileCommandTest : public testing::Test {
 protected:
  ProfileCommandTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "siphon-calibrate-XXXXXX");
    directory_ = mkdtemp(pattern.data());
  }
  ~ProfileCommandTest() override { std::filesystem::remove_all(directory_); }

  // The exit code; what was printed is in out_ and error_.
  int Run(const std::vector<std::string>& arguments) {
    const auto parsed = ParseCommandLine(arguments);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (!parsed.ok()) return kExitBadInput;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto* profile = std::get_if<ProfileArguments>(&*parsed);
    const int code =
        profile != nullptr ? ProfileCommand(*profile) : std::get<OtherCommand>(*parsed).run();
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::string directory_;
  std::string out_;
  std::string error_;
};

TEST_F(ProfileCommandTest, CalibratesADeviceThatSimulateTakes) {
  const std::string device = directory_ + "/cpu.yaml";
  ASSERT_EQ(Run({"profile", "--calibrate", "--output", device, "--format", "json"}), kExitDone)
      << error_;
  const auto told = nlohmann::json::parse(out_);
  EXPECT_EQ(told["device_file"], device);

  const auto text = ReadTextFile(device, "device");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto measured = ParseCalibration(*text, device);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(WriteCalibration(*measured), *text);
  EXPECT_EQ(told["name"], measured->name);
  EXPECT_EQ(told["product_flops_per_second"], measured->product_flops);
  EXPECT_EQ(told["copy_bytes_per_second"], measured->copy_bandwidth.value);
  EXPECT_EQ(told["operation_overhead_ns"], measured->operation_overhead.value);
  EXPECT_GT(measured->operation_overhead, Nanos(0));
  EXPECT_GT(measured->memory, Bytes(0));

  const std::string job = directory_ + "/job.yaml";
  std::ofstream(job) << "model: {kind: gpt, layers: 2, hidden: 32, heads: 2}\n"
                        "data: {kind: synthetic, sequence_length: 16}\n"
                        "train: {global_batch: 8, microbatch: 4}\n"
                        "pipeline: {stages: 2, schedule: 1f1b}\n";
  ASSERT_EQ(Run({"simulate", "--config", job, "--device", device, "--format", "json"}), kExitDone)
      << error_;
  EXPECT_EQ(nlohmann::json::parse(out_)["costs"], "calculated for " + measured->name);
  ASSERT_EQ(Run({"out_of_core", "--device", device, "--model", "vgg16", "--batch", "8", "--link",
                 "1GB/s", "--format", "json"}),
            kExitDone)
      << error_;
  EXPECT_EQ(nlohmann::json::parse(out_)["device"], measured->name);
}

TEST_F(ProfileCommandTest, LooksWhereTheProfileGoesBeforeItMeasures) {
  EXPECT_EQ(Run({"profile", "no_job.yaml", "--output", directory_}), kExitBadInput);
  EXPECT_EQ(error_, "siphon: --output: writing " + directory_ + ": Is a directory\n");
}

TEST_F(ProfileCommandTest, CalibratesNothingTogetherWithAJob) {
  const auto parsed = ParseCommandLine({"profile", "job.yaml", "--calibrate", "--output", "x"});
  EXPECT_EQ(parsed.status().message(),
            "profile: --calibrate measures the processor and takes no job file; leave one out");
}

}  // namespace
}  // namespace siphon
