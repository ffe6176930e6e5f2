// Every call that changes the disk while a checkpoint is saved fails once, alone or with all that
// follow.

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/checkpoint.h"
#include "spdlog/spdlog.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

enum class Fault { kOnce, kEverythingAfter };

// Counts the calls, and from call `at` on gives `error` instead (after writing half of what a write
// was given).
struct FaultyFiles {
  int calls = 0;
  int at = -1;
  Fault fault = Fault::kOnce;
  int error = ENOSPC;
  std::vector<std::string> log;

  bool Fails(const std::string& call) {
    log.push_back(call);
    const int call_number = calls++;
    if (at < 0 || call_number < at || (fault == Fault::kOnce && call_number > at)) return false;
    errno = error;
    return true;
  }

  // The object must outlive what it returns.
  FileOperations Operations() {
    const FileOperations& real = UnsyncedFiles();
    FileOperations files = real;
    files.open = [this, &real](const char* path, int flags, mode_t mode) {
      return Fails(absl::StrCat("open ", path)) ? -1 : real.open(path, flags, mode);
    };
    files.write = [this, &real](int file, const void* bytes, size_t count) -> ssize_t {
      if (!Fails("write")) return real.write(file, bytes, count);
      const bool crashed = fault == Fault::kEverythingAfter && calls > at + 1;
      if (!crashed && count > 1 && real.write(file, bytes, count / 2) < 0) return -1;
      errno = error;
      return -1;
    };
    files.sync = [this, &real](int file) { return Fails("sync") ? -1 : real.sync(file); };
    files.rename = [this, &real](const char* from, const char* to) {
      return Fails(absl::StrCat("rename ", from)) ? -1 : real.rename(from, to);
    };
    files.exchange = [this, &real](const char* a, const char* b) {
      return Fails(absl::StrCat("exchange ", a)) ? -1 : real.exchange(a, b);
    };
    files.make_directory = [this, &real](const char* path, mode_t mode) {
      return Fails(absl::StrCat("mkdir ", path)) ? -1 : real.make_directory(path, mode);
    };
    files.remove_file = [this, &real](const char* path) {
      return Fails(absl::StrCat("unlink ", path)) ? -1 : real.remove_file(path);
    };
    files.remove_directory = [this, &real](const char* path) {
      return Fails(absl::StrCat("rmdir ", path)) ? -1 : real.remove_directory(path);
    };
    return files;
  }
};

// The calls of saving `step` over a directory that holds steps 10 and 20.
int CallsOfASave(int64_t step) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(Save(directory.path(), 10, 2, 10, 2).ok());
  EXPECT_TRUE(Save(directory.path(), 20, 2, 20, 2).ok());
  FaultyFiles counting;
  EXPECT_TRUE(
      Save(directory.path(), step, 2, static_cast<int>(step), 2, counting.Operations()).ok());
  return counting.calls;
}

class SaveFaults : public testing::TestWithParam<int64_t> {
 protected:
  // Hundreds of saves fail here on purpose.
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};
// A new step, and one that replaces the newest.
INSTANTIATE_TEST_SUITE_P(Steps, SaveFaults, testing::Values(30, 20));

TEST_P(SaveFaults, AFullDiskAtAnyCallLeavesTheEarlierCheckpointsIntact) {
  const int64_t step = GetParam();
  const int calls = CallsOfASave(step);
  ASSERT_GT(calls, 20);
  int failed_saves = 0;
  for (int at = 0; at < calls; ++at) {
    const TemporaryDirectory directory;
    ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 2).ok());
    ASSERT_TRUE(Save(directory.path(), 20, 2, 20, 2).ok());
    FaultyFiles faulty{.at = at};
    const auto saved =
        Save(directory.path(), step, 2, static_cast<int>(step), 2, faulty.Operations());
    const std::string context = absl::StrCat("call ", at, " (", faulty.log[at], ")");
    failed_saves += saved.ok() ? 0 : 1;
    // What is called complete is complete, and a failed save has lost nothing.
    const int64_t newest = NewestIntactStep(directory.path(), context);
    if (saved.ok()) {
      EXPECT_EQ(newest, step) << context;
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(saved.status())) << context << ": " << saved.status();
      EXPECT_THAT(newest, AnyOf(20, step)) << context;
      EXPECT_THAT(std::string(saved.status().message()), HasSubstr("No space left on device"));
      EXPECT_THAT(std::string(saved.status().message()), HasSubstr(directory.path()));
    }
    // The next save, with room again, is whole and leaves nothing of the failed one.
    ASSERT_TRUE(Save(directory.path(), 40, 2, 40, 2).ok()) << context;
    EXPECT_EQ(NewestIntactStep(directory.path(), context), 40);
    for (const std::string& name : NamesIn(directory.path())) EXPECT_NE(name[0], '.') << context;
    EXPECT_EQ(NamesIn(directory.path()).size(), 2u) << context;
  }
  EXPECT_GT(failed_saves, 20);
}

TEST_P(SaveFaults, AFullDiskWhileWritingLeavesNothingHalfWritten) {
  const int64_t step = GetParam();
  const TemporaryDirectory directory;
  ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 2).ok());
  ASSERT_TRUE(Save(directory.path(), 20, 2, 20, 2).ok());
  FaultyFiles counting;
  {
    const TemporaryDirectory other;
    ASSERT_TRUE(Save(other.path(), step, 2, 1, 2, counting.Operations()).ok());
  }
  int writes = 0;
  for (const std::string& call : counting.log) writes += call == "write" ? 1 : 0;
  ASSERT_GT(writes, 10);
  for (int failing = 0; failing < writes; ++failing) {
    FileOperations files = UnsyncedFiles();
    int number = 0;
    files.write = [&](int file, const void* bytes, size_t count) -> ssize_t {
      // The disk fills in the middle of a write and stays full.
      if (number++ < failing) return SystemFiles().write(file, bytes, count);
      if (number - 1 == failing && count > 1) return SystemFiles().write(file, bytes, count / 2);
      return errno = ENOSPC, -1;
    };
    const auto saved = Save(directory.path(), step, 2, static_cast<int>(step), 2, files);
    EXPECT_TRUE(absl::IsResourceExhausted(saved.status())) << saved.status();
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010", "step-00000020"));
    EXPECT_EQ(NewestIntactStep(directory.path(), absl::StrCat("write ", failing)), 20);
  }
}

TEST_P(SaveFaults, ACrashAtAnyCallLeavesTheOldStateOrTheNew) {
  const int64_t step = GetParam();
  const int calls = CallsOfASave(step);
  for (int at = 0; at < calls; ++at) {
    const TemporaryDirectory directory;
    ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 2).ok());
    ASSERT_TRUE(Save(directory.path(), 20, 2, 20, 2).ok());
    // Cleaning up fails like all the rest: the process is gone.
    FaultyFiles faulty{.at = at, .fault = Fault::kEverythingAfter, .error = EIO};
    (void)Save(directory.path(), step, 2, static_cast<int>(step), 2, faulty.Operations());
    const std::string context = absl::StrCat("crash at call ", at, " (", faulty.log[at], ")");
    EXPECT_THAT(NewestIntactStep(directory.path(), context), AnyOf(20, step)) << context;
    ASSERT_TRUE(Save(directory.path(), 40, 2, 40, 2).ok()) << context;
    for (const std::string& name : NamesIn(directory.path())) EXPECT_NE(name[0], '.') << context;
    EXPECT_EQ(NewestIntactStep(directory.path(), context), 40);
  }
}

TEST(SaveOrder, EverythingIsOnDiskBeforeTheNameChanges) {
  const TemporaryDirectory directory;
  FaultyFiles logging;
  ASSERT_TRUE(Save(directory.Path("checkpoints"), 10, 2, 10, 2, logging.Operations()).ok());
  int unsynced = 0;
  bool renamed = false;
  for (const std::string& call : logging.log) {
    if (call == "write") ++unsynced;
    if (call == "sync") unsynced = 0;
    if (call.starts_with("rename")) {
      EXPECT_EQ(unsynced, 0);
      renamed = true;
    }
  }
  EXPECT_TRUE(renamed);
  // Last: the directory in which the name changed.
  const std::vector<std::string> end(logging.log.end() - 3, logging.log.end());
  EXPECT_THAT(end, ElementsAre("rename " + directory.Path("checkpoints/.step-00000010.partial"),
                               "open " + directory.Path("checkpoints"), "sync"));
}

TEST(SaveFaultMessages, NameTheFileAndTheBytes) {
  const TemporaryDirectory directory;
  FileOperations files = SystemFiles();
  files.write = [](int, const void*, size_t) -> ssize_t { return errno = ENOSPC, -1; };
  const std::string path = directory.Path("a");
  EXPECT_EQ(WriteTextFile(path, "12345678", files),
            absl::ResourceExhaustedError(path + ": writing byte 0 of 8: No space left on device"));
  files.write = [](int file, const void* bytes, size_t count) -> ssize_t {
    return count == 8 ? SystemFiles().write(file, bytes, 5) : (errno = EDQUOT, -1);
  };
  EXPECT_EQ(WriteTextFile(path, "12345678", files),
            absl::ResourceExhaustedError(path + ": writing byte 5 of 8: Disk quota exceeded"));
  files = SystemFiles();
  files.sync = [](int) { return errno = EIO, -1; };
  EXPECT_EQ(WriteTextFile(path, "12345678", files),
            absl::InternalError(path + ": bringing the file to disk: Input/output error"));
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
}

TEST(SaveFaultMessages, ADirectoryThatCannotBeMadeIsTheUsersInput) {
  const TemporaryDirectory directory;
  WriteAll(directory.Path("file"), "");
  EXPECT_EQ(BeginCheckpoint(directory.Path("file"), 1).status(),
            absl::InvalidArgumentError(directory.Path("file") +
                                       ": making the directory: Not a directory"));
  EXPECT_EQ(BeginCheckpoint(directory.Path("file/checkpoints"), 1).status(),
            absl::InvalidArgumentError(directory.Path("file/checkpoints") +
                                       ": making the directory: Not a directory"));
  FileOperations files = SystemFiles();
  files.make_directory = [](const char*, mode_t) { return errno = EACCES, -1; };
  EXPECT_EQ(BeginCheckpoint(directory.Path("new"), 1, files).status(),
            absl::InvalidArgumentError(directory.Path("new") +
                                       ": making the directory: Permission denied"));
}

TEST(FileOperations, SignalsInTheMiddleOfAWriteAreNoError) {
  const TemporaryDirectory directory;
  FileOperations files = SystemFiles();
  int calls = 0;
  files.write = [&](int file, const void* bytes, size_t) -> ssize_t {
    if (++calls % 2 == 1) return errno = EINTR, -1;
    return SystemFiles().write(file, bytes, 1);
  };
  int syncs = 0;
  files.sync = [&](int file) {
    return ++syncs == 1 ? (errno = EINTR, -1) : SystemFiles().sync(file);
  };
  ASSERT_TRUE(WriteTextFile(directory.Path("a"), "every byte", files).ok());
  EXPECT_EQ(ReadAll(directory.Path("a")), "every byte");
  EXPECT_EQ(calls, 20);
}

TEST(FileOperations, LargeFilesAreWrittenInPieces) {
  const TemporaryDirectory directory;
  FileOperations files = SystemFiles();
  std::vector<size_t> counts;
  files.write = [&](int, const void*, size_t count) {
    counts.push_back(count);
    return static_cast<ssize_t>(count);
  };
  const std::vector<std::byte> bytes((size_t{128} << 20) + 3);
  ASSERT_TRUE(WriteFile(directory.Path("a"), {FilePiece(bytes)}, files).ok());
  EXPECT_THAT(counts, ElementsAre(size_t{64} << 20, size_t{64} << 20, 3));
}

}  // namespace
}  // namespace siphon
