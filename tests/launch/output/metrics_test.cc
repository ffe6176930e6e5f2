#include "launch/output/metrics.h"

#include <sys/resource.h>
#include <unistd.h>
#include <csignal>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Two workers and a step of half a second in which they compute 0.25 and 0.125 s.
StepMetrics SomeStep(int64_t number) {
  StepMetrics step;
  step.step = number;
  step.loss = 2.5;
  step.grad_norm = 0.75;
  step.learning_rate = 0.001;
  step.duration = Nanos(500'000'000);
  step.tokens = 2048;
  step.samples = 32;
  step.forward_flops = 2e11;
  step.workers = {{.peak = Bytes(1000),
                   .busy = Nanos(250'000'000),
                   .wait = Nanos(50'000'000),
                   .swapped_host = Bytes(7)},
                  {.peak = Bytes(2000),
                   .busy = Nanos(125'000'000),
                   .wait = Nanos(250'000'000),
                   .swap_wait = Nanos(125'000'000),
                   .recompute = Nanos(125'000'000),
                   .second_choices = 3}};
  step.replans = 1;
  return step;
}

class Metrics : public testing::Test {
 protected:
  Metrics() {
    std::string pattern = (fs::temp_directory_path() / "siphon-metrics-test-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/metrics.jsonl";
  }
  ~Metrics() override { fs::remove_all(directory_); }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void Put(const std::string& text) const { std::ofstream(path_) << text; }

  std::string directory_;
  std::string path_;
};

TEST(MetricsLine, HasEveryFieldOfTheContract) {
  EXPECT_EQ(
      MetricsLine(SomeStep(17)),
      R"({"step":17,"loss":2.5,"grad_norm":0.75,"learning_rate":0.001,"tokens_per_second":4096.0,)"
      R"("samples_per_second":64.0,"tflops":1.2,"step_seconds":0.5,"bubble_fraction":0.625,)"
      R"("peak_bytes":[1000,2000],"swapped_out_bytes":{"d2d":[0,0],"host":[7,0],"nvme":[0,0]},)"
      R"("recompute_seconds":[0.0,0.125],"exposed_wait_seconds":[0.05,0.25],)"
      R"("swap_wait_seconds":[0.0,0.125],"second_choice_groups":[0,3],"replans":1})"
      "\n");
}

TEST(MetricsLine, AValidationAddsItsLoss) {
  StepMetrics step = SomeStep(1);
  step.validation_loss = 1.5;
  EXPECT_THAT(MetricsLine(step), HasSubstr(R"("validation_loss":1.5)"));
}

TEST(MetricsLine, StaysJsonWhenTheLossIsNotANumber) {
  StepMetrics step = SomeStep(1);
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.grad_norm = std::numeric_limits<double>::infinity();
  const auto line = nlohmann::json::parse(MetricsLine(step), nullptr, false);
  ASSERT_FALSE(line.is_discarded());
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["grad_norm"].is_null());
}

TEST(MetricsLine, AStepWithoutTimeHasNoRates) {
  StepMetrics step = SomeStep(1);
  step.duration = Nanos(0);
  EXPECT_EQ(TokensPerSecond(step), 0);
  EXPECT_EQ(TeraflopsPerSecond(step), 0);
  EXPECT_EQ(BubbleFraction(step), 0);
}

TEST_F(Metrics, ANewRunReplacesTheFile) {
  Put("old\n");
  const auto writer = MetricsWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(SomeStep(1)).ok());
  ASSERT_TRUE((*writer)->Write(SomeStep(2)).ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(1)) + MetricsLine(SomeStep(2)));
}

TEST_F(Metrics, AResumedRunDropsWhatItWillDoAgainAndHalfLines) {
  Put(MetricsLine(SomeStep(1)) + MetricsLine(SomeStep(2)) + MetricsLine(SomeStep(3)) +
      "{\"step\":4,\"lo");
  const auto writer = MetricsWriter::Open(path_, 2);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(SomeStep(3)).ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(1)) + MetricsLine(SomeStep(2)) + MetricsLine(SomeStep(3)));
}

TEST_F(Metrics, AResumedRunMayFindNoFile) {
  const auto writer = MetricsWriter::Open(path_, 2);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ(Text(), "");
}

TEST_F(Metrics, APathThatCannotBeWrittenIsNamed) {
  const std::string path = directory_ + "/none/metrics.jsonl";
  EXPECT_EQ(MetricsWriter::Open(path).status(),
            absl::InvalidArgumentError("writing " + path + ": No such file or directory"));
}

TEST_F(Metrics, BeginsAnewWhereTheFileOrItsDirectoryIsGone) {
  const auto writer = MetricsWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(SomeStep(1)).ok());
  EXPECT_EQ((*writer)->BeginAnewIfGone(), absl::StatusOr<bool>(false));
  std::filesystem::rename(path_, path_ + ".1");  // as one who rotates logs does
  EXPECT_EQ((*writer)->BeginAnewIfGone(), absl::StatusOr<bool>(true));
  ASSERT_TRUE((*writer)->Write(SomeStep(2)).ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(2)));
  std::filesystem::remove_all(directory_);
  EXPECT_EQ((*writer)->BeginAnewIfGone(), absl::StatusOr<bool>(true));
  ASSERT_TRUE((*writer)->Write(SomeStep(3)).ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(3)));
}

TEST_F(Metrics, LeavesAFileThatHasTakenItsPlaceAlone) {
  const auto writer = MetricsWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto other = MetricsWriter::Open(path_);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Write(SomeStep(1)).ok());
  EXPECT_EQ((*writer)->BeginAnewIfGone().status(),
            absl::FailedPreconditionError("another file has taken the place of " + path_ +
                                          "; is another run in there?"));
  EXPECT_EQ(Text(), MetricsLine(SomeStep(1)));
}

// A file that may not grow stands for a full disk: write() fails part-way, as it does there.
TEST_F(Metrics, ALineThatDoesNotFitIsTakenBack) {
  const auto writer = MetricsWriter::Open(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(SomeStep(1)).ok());
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight = {MetricsLine(SomeStep(1)).size() + 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const absl::Status status = (*writer)->Write(SomeStep(2));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(1)));
  ASSERT_TRUE((*writer)->Write(SomeStep(3)).ok());
  EXPECT_EQ(Text(), MetricsLine(SomeStep(1)) + MetricsLine(SomeStep(3)));
}

}  // namespace
}  // namespace siphon
