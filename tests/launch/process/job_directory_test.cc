#include "launch/process/job_directory.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class JobDirectoryTest : public testing::Test {
 protected:
  JobDirectoryTest() {
    std::string pattern = (fs::temp_directory_path() / "siphon-root-test-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~JobDirectoryTest() override { fs::remove_all(root_); }

  int Entries() const { return static_cast<int>(std::distance(fs::directory_iterator(root_), {})); }

  // A job that makes its directory and is killed; returns once both have happened.
  void LeaveRemains() {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto directory = JobDirectory::Make(Bytes(0), {root_});
      if (!directory.ok()) _exit(1);
      fs::create_directories(directory->path() + "/deep/er");
      std::ofstream(directory->path() + "/deep/er/segment") << "x";
      const char byte = 1;
      if (write(ready[1], &byte, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
  }

  std::string root_;
};

TEST_F(JobDirectoryTest, IsThereAsLongAsItsOwner) {
  std::string path;
  {
    const auto directory = JobDirectory::Make(Bytes(1), {root_});
    ASSERT_TRUE(directory.ok()) << directory.status();
    path = directory->path();
    EXPECT_THAT(path, MatchesRegex(absl::StrCat(root_, "/siphon-", getuid(), "-......")));
    EXPECT_EQ(directory->passed_over(), "");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    std::ofstream(path + "/file") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(JobDirectoryTest, RemovesWhatAKilledJobLeft) {
  LeaveRemains();
  LeaveRemains();
  const auto directory = JobDirectory::Make(Bytes(1), {root_});
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(Entries(), 1);
}

TEST_F(JobDirectoryTest, KeepsWhatALivingJobHasAndWhatIsNotOurs) {
  fs::create_directory(root_ + "/siphon-other");
  std::ofstream(absl::StrCat(root_, "/siphon-", getuid(), "-afile")) << "x";
  fs::create_directory_symlink(root_ + "/siphon-other",
                               absl::StrCat(root_, "/siphon-", getuid(), "-alink"));
  const auto first = JobDirectory::Make(Bytes(1), {root_});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = JobDirectory::Make(Bytes(1), {root_});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(fs::exists(first->path()));
  EXPECT_NE(first->path(), second->path());
  EXPECT_EQ(Entries(), 5);
}

TEST_F(JobDirectoryTest, PassesOverARootThatCannotBeUsed) {
  const auto directory = JobDirectory::Make(Bytes(1), {root_ + "/none", root_});
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->root(), root_);
  EXPECT_EQ(directory->passed_over(),
            absl::StrCat(root_, "/none cannot be used (No such file or directory)"));
}

TEST_F(JobDirectoryTest, SaysWhatIsFreeAndWhatToSetWhenNothingHasRoom) {
  const auto directory = JobDirectory::Make(Bytes(int64_t{1} << 60), {root_});
  EXPECT_EQ(directory.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(directory.status().message());
  EXPECT_THAT(message, StartsWith("no directory has room for the "));
  EXPECT_THAT(message, HasSubstr(root_ + " has "));
  EXPECT_THAT(message,
              HasSubstr(" free. Set TMPDIR to a directory with room, or enlarge /dev/shm"));
  EXPECT_EQ(Entries(), 0);
}

}  // namespace
}  // namespace siphon
