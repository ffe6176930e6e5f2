#include "swap/device/nvme_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "swap/device/nvme_io.h"
#include "tests/swap/device/scratch_drive.h"

namespace siphon {
namespace {

using testing::HasSubstr;

TEST(NvmeFile, HasItsBlocksAndNoName) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(100'001));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(drive.empty());
  EXPECT_EQ(file->bytes(), Bytes(25 * kNvmeBlock));
  struct stat facts {};
  ASSERT_EQ(fstat(file->fd(), &facts), 0);
  EXPECT_EQ(facts.st_size, 25 * kNvmeBlock);
  EXPECT_GE(facts.st_blocks * 512, 25 * kNvmeBlock);
  EXPECT_EQ(facts.st_nlink, 0u);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_THAT(file->name(), HasSubstr(drive.path() + "/parked-"));
  EXPECT_TRUE(file->CheckWhole().ok());
}

TEST(NvmeFile, MakesItsDirectoryAndOutlivesIt) {
  const ScratchDrive drive;
  NvmeFileOptions options = drive.File(8192, NvmeFileOptions::Direct::kNever);
  options.directory += "/deep/down";
  auto file = NvmeFile::Make(options);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->direct());
  std::filesystem::remove_all(options.directory);
  EXPECT_EQ(pwrite(file->fd(), "siphon", 6, 5000), 6);
  NvmeFile moved = *std::move(file);
  char read[6];
  EXPECT_EQ(pread(moved.fd(), read, 6, 5000), 6);
  EXPECT_EQ(std::string(read, 6), "siphon");
  EXPECT_EQ(file->fd(), -1);
  moved = NvmeFile::Make(drive.File(0)).value();
  EXPECT_EQ(moved.bytes(), Bytes(0));
}

TEST(NvmeFile, GoesThroughThePageCacheWhereThereIsNoOtherWay) {
  if (!std::filesystem::is_directory("/proc/self/fdinfo") || access("/dev/shm", W_OK) != 0) {
    GTEST_SKIP() << "skipped, because /dev/shm is not to be had";
  }
  const auto file =
      NvmeFile::Make({.directory = "/dev/shm", .name = "siphon-test", .bytes = Bytes(8192)});
  ASSERT_TRUE(file.ok()) << file.status();
  // What it says of itself is what the kernel says: newer kernels take O_DIRECT on tmpfs too.
  EXPECT_EQ(file->direct(), (fcntl(file->fd(), F_GETFL) & O_DIRECT) != 0);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr("siphon-test")));
  }
}

TEST(NvmeFile, IsRefusedWithoutThatSpace) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(int64_t{1} << 60));
  EXPECT_TRUE(absl::IsResourceExhausted(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()),
              testing::MatchesRegex("the drive of .* has .* free; to park tensors there takes "
                                    "1048576 TiB, and 64.0 MiB must stay free"));
  EXPECT_TRUE(drive.empty());
  const auto free = FreeOnDrive(drive.path() + "/not/there/yet");
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_TRUE(absl::IsResourceExhausted(CheckRoomOnDrive(drive.path(), *free)));
  EXPECT_TRUE(CheckRoomOnDrive(drive.path(), Bytes(1)).ok());
}

// The space is there when it is looked for, and not when it is taken.
TEST(NvmeFile, IsRefusedWhenItsBlocksAreNotToBeHad) {
  const ScratchDrive drive;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const auto file = NvmeFile::Make(drive.File(2 << 20));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  EXPECT_TRUE(absl::IsResourceExhausted(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()),
              testing::MatchesRegex("drive file .*/parked-.*: 2.00 MiB are not to be had: "
                                    "File too large"));
  EXPECT_TRUE(drive.empty());
}

TEST(NvmeFile, SaysWhyItCannotBeMade) {
  const ScratchDrive drive;
  std::ofstream(drive.path() + "/file") << "no directory";
  NvmeFileOptions options = drive.File(8192);
  options.directory += "/file/below";
  const auto file = NvmeFile::Make(options);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("Not a directory"));
}

TEST(NvmeFile, SeesThatSomebodyHasCutIt) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(3 * kNvmeBlock));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(ftruncate(file->fd(), kNvmeBlock), 0);
  EXPECT_THAT(std::string(file->CheckWhole().message()),
              HasSubstr("somebody has cut it to 4096 of 12288 bytes"));
}

// A write that was under way has made it long again.
TEST(NvmeFile, SeesTheHoleThatACutHasLeft) {
  const ScratchDrive drive;
  const auto file = NvmeFile::Make(drive.File(8 * kNvmeBlock, NvmeFileOptions::Direct::kNever));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<char> block(kNvmeBlock, 'x');
  for (int number = 0; number < 8; ++number) {
    ASSERT_EQ(pwrite(file->fd(), block.data(), block.size(), number * kNvmeBlock), kNvmeBlock);
    ASSERT_TRUE(file->CheckWhole().ok());
  }
  ASSERT_EQ(fsync(file->fd()), 0);
  ASSERT_TRUE(file->CheckWhole().ok());
  ASSERT_EQ(ftruncate(file->fd(), kNvmeBlock), 0);
  ASSERT_EQ(pwrite(file->fd(), block.data(), block.size(), 7 * kNvmeBlock), kNvmeBlock);
  ASSERT_EQ(fsync(file->fd()), 0);
  EXPECT_THAT(std::string(file->CheckWhole().message()),
              HasSubstr("somebody has cut it to 8192 of 32768 bytes"));
}

}  // namespace
}  // namespace siphon
