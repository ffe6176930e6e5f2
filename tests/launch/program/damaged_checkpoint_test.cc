// What the real program says to a checkpoint that somebody or something has damaged.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/program/tiny_job.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::MatchesRegex;

// A finished run whose checkpoint is then damaged.
class DamagedCheckpoint : public TinyJobTest {
 protected:
  void Train() {
    const ProgramEnd end = Siphon({"train", job(), "--set", "train.steps=2"});
    ASSERT_EQ(end.exit_code, 0) << end.errors;
  }
  std::string File(const std::string& name) const { return CheckpointPath("run", 2) + "/" + name; }
  ProgramEnd Resume() { return Siphon({"train", job(), "--set", "checkpoint.resume=auto"}); }
  std::string Read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(DamagedCheckpoint, ThatIsTruncatedIsNamedWithItsFileAndNothingIsOverwritten) {
  Train();
  const std::string file = File("model-00002-of-00004.safetensors");
  const auto size = fs::file_size(file);
  fs::resize_file(file, size / 2);
  const std::string metrics = Read(PathOf("run/metrics.jsonl"));
  const ProgramEnd end = Resume();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.errors, MatchesRegex("siphon: " + file + "[^\n]*\n"));
  EXPECT_EQ(fs::file_size(file), size / 2);
  EXPECT_EQ(Read(PathOf("run/metrics.jsonl")), metrics);
  ExpectNothingLeft();
}

TEST_F(DamagedCheckpoint, ThatWasEditedIsNamedWithFileAndTensorAndNothingIsOverwritten) {
  Train();
  const std::string file = File("model-00002-of-00004.safetensors");
  std::string bytes = Read(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string metrics = Read(PathOf("run/metrics.jsonl"));
  const ProgramEnd end = Resume();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(
      end.errors,
      MatchesRegex("siphon: worker [0-3] failed \\(rank [0-3], pid [0-9]+\\) during reading "
                   "the checkpoint\n  cause: INVALID_ARGUMENT: " +
                   file +
                   ": tensor '[^']+'[^\n]*\n  the job ended before its first step "
                   "was complete; it was to go on from " +
                   fs::path(file).parent_path().string() + "\n"));
  EXPECT_EQ(Read(file), bytes);
  EXPECT_EQ(Read(PathOf("run/metrics.jsonl")), metrics);
  ExpectNothingLeft();
}

TEST_F(DamagedCheckpoint, OfAnotherModelIsRefusedWithTheTensor) {
  Train();
  const std::string metrics = Read(PathOf("run/metrics.jsonl"));
  const ProgramEnd end =
      Siphon({"train", job(), "--set", "checkpoint.resume=auto", "--set", "model.hidden=32"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.errors, testing::ContainsRegex("tensor '[^']+'"));
  EXPECT_EQ(Read(PathOf("run/metrics.jsonl")), metrics);
}

// Not taken for one that is not there.
TEST_F(DamagedCheckpoint, WhoseSidecarIsDamagedIsNamedByAllWhoLookForTheNewest) {
  Train();
  const std::string file = File("siphon.json");
  fs::resize_file(file, fs::file_size(file) / 2);
  const std::string message = "siphon: " + file + ": is not valid JSON at byte [0-9]+; " +
                              fs::path(file).parent_path().string() +
                              " may be the newest checkpoint: repair it or move it away\n";
  const ProgramEnd resumed = Resume();
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_THAT(resumed.errors, MatchesRegex(message));
  for (const std::string directory : {"run", "run/checkpoints"}) {
    const ProgramEnd end = Siphon({"generate", "--checkpoint", PathOf(directory), "--prompt", "a"});
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(end.errors, MatchesRegex(message)) << directory;
    EXPECT_EQ(end.output, "");
  }
}

}  // namespace
}  // namespace siphon
