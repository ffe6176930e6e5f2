#include "launch/output/text_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace siphon {
namespace {

namespace fs = std::filesystem;

class WrittenText : public testing::Test {
 protected:
  WrittenText() {
    std::string pattern = (fs::temp_directory_path() / "siphon-text-file-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~WrittenText() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  static std::string TextOf(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::string directory_;
};

TEST_F(WrittenText, IsReplacedWhole) {
  const std::string path = Path("plan.txt");
  ASSERT_TRUE(WriteTextFile(path, "a longer text").ok());
  std::ifstream old(path);
  ASSERT_TRUE(WriteTextFile(path, "short").ok());
  EXPECT_EQ(TextOf(path), "short");
  // Who has the old one open reads it to its end.
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "a longer text");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
}

TEST_F(WrittenText, GoesToWhereALinkLeads) {
  ASSERT_TRUE(fs::create_directory(Path("far")));
  ASSERT_TRUE(WriteTextFile(Path("far/plan.txt"), "old").ok());
  fs::create_symlink("far/plan.txt", Path("near"));
  fs::create_symlink(Path("near"), Path("nearer"));
  ASSERT_TRUE(WriteTextFile(Path("nearer"), "new").ok());
  EXPECT_EQ(TextOf(Path("far/plan.txt")), "new");
  EXPECT_TRUE(fs::is_symlink(Path("near")));
  EXPECT_TRUE(fs::is_symlink(Path("nearer")));
}

TEST_F(WrittenText, IsMadeWhereALinkLeads) {
  fs::create_symlink("plan.txt", Path("link"));
  EXPECT_TRUE(CheckCanWrite(Path("link")).ok());
  ASSERT_TRUE(WriteTextFile(Path("link"), "text").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(TextOf(Path("plan.txt")), "text");
}

TEST_F(WrittenText, IsNoLinkInACircle) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  const std::string error = "writing " + Path("a") + ": Too many levels of symbolic links";
  EXPECT_EQ(WriteTextFile(Path("a"), "text").message(), error);
  EXPECT_EQ(CheckCanWrite(Path("a")).message(), error);
}

// As a device, which root could replace by a file.
TEST_F(WrittenText, LeavesAPipeAPipe) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(CheckCanWrite(pipe).ok());
  ASSERT_TRUE(WriteTextFile(pipe, "through the pipe").ok());
  char text[64];
  const ssize_t got = read(reader, text, sizeof text);
  close(reader);
  EXPECT_EQ(std::string(text, got > 0 ? static_cast<size_t>(got) : 0), "through the pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(WrittenText, SaysThatADeviceIsFull) {
  fs::create_symlink("/dev/full", Path("full"));
  EXPECT_TRUE(CheckCanWrite(Path("full")).ok());
  const absl::Status written = WriteTextFile(Path("full"), "text");
  EXPECT_EQ(written.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(written.message(), "writing " + Path("full") + ": No space left on device");
}

// A file, here, that others hold open: replaced, it would have nothing of what is printed.
TEST_F(WrittenText, StandsInStandardOutputBetweenWhatIsPrinted) {
  fs::create_symlink("/proc/self/fd/1", Path("stdout"));
  testing::internal::CaptureStdout();
  std::fputs("before, ", stdout);
  const absl::Status written = WriteTextFile(Path("stdout"), "text, ");
  std::fputs("after", stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before, text, after");
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(fs::is_symlink(Path("stdout")));
}

TEST_F(WrittenText, IsKnownNotToBeWritableBefore) {
  EXPECT_TRUE(CheckCanWrite(Path("plan.txt")).ok());
  EXPECT_TRUE(CheckCanWrite("plan.txt").ok() || access(".", W_OK) != 0);
  EXPECT_FALSE(fs::exists(Path("plan.txt")));
  EXPECT_EQ(CheckCanWrite(directory_).message(), "writing " + directory_ + ": Is a directory");
  const absl::Status missing = CheckCanWrite(Path("none/plan.txt"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(missing.message(), "writing " + Path("none/plan.txt") + ": folder " + Path("none") +
                                   ": No such file or directory");
  ASSERT_TRUE(WriteTextFile(Path("file"), "").ok());
  EXPECT_EQ(CheckCanWrite(Path("file/plan.txt")).message(),
            "writing " + Path("file/plan.txt") + ": folder " + Path("file") + ": Not a directory");
  EXPECT_TRUE(CheckOutputs({{"--output", ""}, {"--svg", Path("plan.svg")}}).ok());
  EXPECT_EQ(CheckOutputs({{"--output", ""}, {"--svg", directory_}}).message(),
            "--svg: writing " + directory_ + ": Is a directory");
  if (geteuid() == 0) return;  // root may write anywhere
  fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(CheckCanWrite(Path("plan.txt")).message(),
            "writing " + Path("plan.txt") + ": folder " + directory_ + ": Permission denied");
  fs::permissions(directory_, fs::perms::owner_all);
}

}  // namespace
}  // namespace siphon
