#include "launch/process/launcher_output.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace siphon {
namespace {

TEST(LauncherOutput, IsRefusedWhereItsDiskIsFull) {
  EXPECT_EQ(ReserveOutput("/dev/full", Bytes(1)),
            absl::InternalError("standard output could not be written: No space left on device"));
  EXPECT_TRUE(ReserveOutput("/dev/full", Bytes(0)).ok());
}

// More than any disk has.
TEST(LauncherOutput, IsRefusedWhereItsFileCannotGrowSo) {
  const std::string path = testing::TempDir() + "siphon_launcher_output";
  std::ofstream(path) << "{";
  EXPECT_TRUE(absl::IsInternal(ReserveOutput(path, Bytes(int64_t{1} << 60))));
  EXPECT_TRUE(ReserveOutput(path, Bytes(4096)).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 1u);  // the room is behind its end
  std::filesystem::remove(path);
}

TEST(LauncherOutput, IsNobodysBusinessWhereItIsNoFile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(ReserveOutput(absl::StrCat("/proc/self/fd/", ends[1]), Bytes(1 << 20)).ok());
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(ReserveOutput("/dev/null", Bytes(1 << 20)).ok());
  EXPECT_TRUE(ReserveOutput("/nowhere/file", Bytes(1 << 20)).ok());
}

}  // namespace
}  // namespace siphon
