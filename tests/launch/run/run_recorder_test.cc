#include "launch/run/record/run_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "launch/output/text_file.h"
#include "tests/launch/run/small_job.h"

namespace siphon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What somebody does to the output directory of a run under way; one worker, which reports nothing.
class RunRecorders : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = absl::StrCat(testing::TempDir(), "siphon_recorder_", info->name());
    std::filesystem::remove_all(folder_);
    auto prepared = PrepareJob(SmallJob("mlp", folder_), {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    prepared_ = std::make_unique<PreparedJob>(*std::move(prepared));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RunRecorder> Open() const {
    auto recorder = RunRecorder::Open(*prepared_, 0);
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    return recorder.ok() ? *std::move(recorder) : nullptr;
  }
  // What is said of it.
  static std::string Record(RunRecorder& recorder, int64_t step) {
    testing::internal::CaptureStderr();
    recorder.Record({.step = step, .duration = Nanos(1'000'000)}, {StepRecord{}});
    return testing::internal::GetCapturedStderr();
  }
  static std::string Close(RunRecorder& recorder) {
    testing::internal::CaptureStderr();
    recorder.Close({});
    return testing::internal::GetCapturedStderr();
  }
  std::string MetricsPath() const { return folder_ + "/metrics.jsonl"; }
  std::string Metrics() const { return ReadTextFileIfThere(MetricsPath()).value_or("unreadable"); }

  std::string folder_;
  std::unique_ptr<PreparedJob> prepared_;
};

TEST_F(RunRecorders, SayThatTheirFilesAreGoneAndGoOnInNewOnes) {
  const auto recorder = Open();
  ASSERT_NE(recorder, nullptr);
  Record(*recorder, 1);
  recorder->RecordTrace({WorkerTimeline{}}, 1);
  std::filesystem::remove_all(folder_);
  const std::string begun =
      MetricsPath() + " was removed or moved during the run: it begins anew with step 2";
  EXPECT_THAT(Record(*recorder, 2), HasSubstr("warning: " + begun));
  EXPECT_THAT(Record(*recorder, 3), Not(HasSubstr("removed")));
  EXPECT_THAT(Metrics(), AllOf(StartsWith("{\"step\":2,"), HasSubstr("{\"step\":3,")));
  EXPECT_THAT(Close(*recorder),
              AllOf(HasSubstr(begun), HasSubstr("metrics     " + MetricsPath()),
                    HasSubstr(folder_ + "/measured.trace.json was removed or moved"),
                    Not(HasSubstr("open it at"))));
}

TEST_F(RunRecorders, LeaveTheMetricsOfAnotherRunInTheSameDirectoryAlone) {
  const auto first = Open();
  ASSERT_NE(first, nullptr);
  Record(*first, 1);
  const auto second = Open();
  ASSERT_NE(second, nullptr);
  Record(*second, 1);
  const std::string of_second = Metrics();
  EXPECT_THAT(Record(*first, 2), HasSubstr("no more metrics from step 2 on: another file has"));
  EXPECT_THAT(Record(*second, 2), Not(HasSubstr("warning")));
  EXPECT_THAT(Metrics(), AllOf(StartsWith(of_second), HasSubstr("{\"step\":2,")));
  EXPECT_THAT(Close(*first), Not(HasSubstr("metrics     ")));
}

}  // namespace
}  // namespace siphon
