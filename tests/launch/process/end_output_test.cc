#include "launch/process/end_output.h"

#include <gtest/gtest.h>

#include <string>

#include "launch/process/exit_codes.h"

namespace siphon {
namespace {

// The exit code for `text` printed to the file, and what was said.
struct End {
  int code = -1;
  std::string errors;
};
End EndAfter(const std::string& path, const std::string& text, int code) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return {};
  testing::internal::CaptureStderr();
  std::fputs(text.c_str(), file);
  End end{.code = EndOutput(code, file)};
  end.errors = testing::internal::GetCapturedStderr();
  std::fclose(file);
  return end;
}

TEST(EndOutput, LeavesTheCodeWhereAllWasWritten) {
  const std::string path = testing::TempDir() + "siphon_end_output";
  for (const int code : {kExitDone, kExitBadInput, kExitStopped}) {
    const End end = EndAfter(path, "{}\n", code);
    EXPECT_EQ(end.code, code);
    EXPECT_EQ(end.errors, "");
  }
  std::remove(path.c_str());
}

TEST(EndOutput, IsAFailureWhereTheDiskIsFull) {
  for (const int code : {kExitDone, kExitStopped}) {
    const End end = EndAfter("/dev/full", "{}\n", code);
    EXPECT_EQ(end.code, kExitFailure);
    EXPECT_EQ(end.errors,
              "siphon: standard output could not be written: No space left on device\n");
  }
  EXPECT_EQ(EndAfter("/dev/full", "{}\n", kExitDoesNotFit).code, kExitDoesNotFit);
  EXPECT_EQ(EndAfter("/dev/full", "", kExitDone).code, kExitDone);
}

// More than the file's buffer: it is written, and refused, before the end.
TEST(EndOutput, RemembersWhatWasLostBefore) {
  const End end = EndAfter("/dev/full", std::string(1 << 20, 'x'), kExitDone);
  EXPECT_EQ(end.code, kExitFailure);
  EXPECT_EQ(end.errors.find("siphon: standard output could not be written"), 0u) << end.errors;
}

}  // namespace
}  // namespace siphon
