#include "launch/process/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

namespace siphon {
namespace {

// Its own soft limit is as before behind each test; the hard one cannot be raised again, so no test
// lowers it (tests/launch/program/bad_input_test.cc does, in a child).
class OpenFiles : public testing::Test {
 protected:
  OpenFiles() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFiles() override { setrlimit(RLIMIT_NOFILE, &before_); }

  void SetSoft(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t Soft() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(OpenFiles, OfMpirunGrowWithItsWorkers) {
  EXPECT_GE(FilesOfMpirun(4), 36 + 1);  // counted with 4 workers, and with 16
  EXPECT_GE(FilesOfMpirun(16), 72 + 1);
  EXPECT_LT(FilesOfMpirun(64), 1024);
}

TEST_F(OpenFiles, AreAllowedUpToTheHardLimit) {
  SetSoft(64);
  EXPECT_TRUE(AllowOpenFiles(100).ok());
  EXPECT_EQ(Soft(), 100u);
}

TEST_F(OpenFiles, LeaveAHigherLimitAlone) {
  SetSoft(128);
  EXPECT_TRUE(AllowOpenFiles(100).ok());
  EXPECT_EQ(Soft(), 128u);
}

TEST_F(OpenFiles, BeyondTheHardLimitAreRefusedWithIt) {
  if (before_.rlim_max > 1'000'000'000) GTEST_SKIP() << "skipped, because nothing limits them here";
  const auto most = static_cast<int64_t>(before_.rlim_max);
  const absl::Status status = AllowOpenFiles(most + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  const std::string text(status.message());
  EXPECT_NE(text.find("the limit is " + std::to_string(most) + ";"), std::string::npos) << text;
  EXPECT_EQ(Soft(), before_.rlim_cur);
}

}  // namespace
}  // namespace siphon
