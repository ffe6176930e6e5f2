#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/round_floats.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/sidecar.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Checkpoint, FourWorkersLeaveTheseFiles) {
  const TemporaryDirectory directory(testing::TempDir());  // on disk, with fsync

  const auto path = Save(directory.Path("run/checkpoints"), 120, 4, 1, 0, SystemFiles());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, directory.Path("run/checkpoints/step-00000120"));
  EXPECT_THAT(NamesIn(directory.Path("run/checkpoints")), ElementsAre("step-00000120"));
  EXPECT_THAT(
      NamesIn(*path),
      ElementsAre("model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                  "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors",
                  "model.safetensors.index.json", "optimizer-00001-of-00004.safetensors",
                  "optimizer-00002-of-00004.safetensors", "optimizer-00003-of-00004.safetensors",
                  "optimizer-00004-of-00004.safetensors", "siphon.json"));
}

TEST(Checkpoint, ShardsOfAnyNumberOfWorkersAreReadByAnyOther) {
  const TensorSet expected = AllLayers(5);
  for (const int writers : {1, 2, 4, 8}) {
    const TemporaryDirectory directory;
    const auto path = Save(directory.path(), 5, writers, 5, 0);
    ASSERT_TRUE(path.ok()) << path.status();
    const auto checkpoint = Checkpoint::Open(*path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const int readers : {1, 2, 4, 8}) {
      std::string all;
      for (int reader = 0; reader < readers; ++reader) {
        const TensorSet part = LayersOf(reader, readers, 5).Blank();
        const absl::Status status = checkpoint->Read(part.tensors());
        EXPECT_TRUE(status.ok()) << writers << " to " << readers << ": " << status;
        all += part.Bytes();
      }
      EXPECT_EQ(all, expected.Bytes()) << writers << " to " << readers;
    }
  }
}

TEST(Checkpoint, GivesBackItsScalarsAsTheyWere) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 7, 2, 1, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto checkpoint = Checkpoint::Open(*path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->info(), InfoAt(7));
  EXPECT_EQ(checkpoint->path(), *path);
  EXPECT_THAT(
      checkpoint->Describe(),
      HasSubstr("step-00000007: step 7, 224 samples, fp32, optimizer adamw, seed -7, 2 threads a "
                "worker, 8 parameters, 16 optimizer tensors\n"));
  EXPECT_THAT(checkpoint->Describe(), HasSubstr("  model-00002-of-00002.safetensors  4 tensors, "));
}

TEST(Checkpoint, GivesBackPrecisionAndLossScaleToTheBit) {
  const TemporaryDirectory directory;
  CheckpointInfo info = InfoAt(1);
  info.precision = "fp16";
  info.loss_scale = {.scale = 1.0F / 8, .fine_steps = 1999, .skipped_steps = 4};
  TensorSet set;
  set.Add("w", false, {2}, 1);
  const auto partial = BeginCheckpoint(directory.path(), 1);
  ASSERT_TRUE(partial.ok()) << partial.status();
  const auto shard = WriteCheckpointShard(*partial, 0, 1, set.tensors());
  ASSERT_TRUE(shard.ok()) << shard.status();
  const auto path = FinishCheckpoint(*partial, info, {*shard}, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto checkpoint = Checkpoint::Open(*path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->info(), info);

  // What is held in 16 bits comes from the same float32 tensor, rounded.
  std::vector<std::byte> narrow(4), rounded(4);
  ASSERT_TRUE(
      checkpoint
          ->Read({{.name = "w", .spec = {DType::kBFloat16, {2}}, .bytes = absl::MakeSpan(narrow)}})
          .ok());
  RoundFloats(set.tensors()[0].bytes, DType::kBFloat16, absl::MakeSpan(rounded));
  EXPECT_EQ(narrow, rounded);
}

TEST(Checkpoint, ATiedCopyIsWrittenOnceAndReadIntoEachPlace) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 1, 4, 1, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto checkpoint = Checkpoint::Open(*path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const TensorSet once = LayersOf(0, 8, 1);
  const TensorSet first = once.Blank(), second = once.Blank();
  std::vector<CheckpointTensor> both = first.tensors();
  both.insert(both.end(), second.tensors().begin(), second.tensors().end());
  ASSERT_TRUE(checkpoint->Read(both).ok());
  EXPECT_EQ(first.Bytes(), once.Bytes());
  EXPECT_EQ(second.Bytes(), once.Bytes());
}

TEST(Checkpoint, AParameterMayBeNamedLikeAMomentOfAnother) {
  const TemporaryDirectory directory;
  TensorSet set;
  set.Add("w", false, {2}, 1);
  set.Add("w.exp_avg", true, {2}, 2);
  set.Add("w.exp_avg", false, {2}, 3);
  const auto partial = BeginCheckpoint(directory.path(), 1);
  ASSERT_TRUE(partial.ok()) << partial.status();
  const auto shard = WriteCheckpointShard(*partial, 0, 1, set.tensors());
  ASSERT_TRUE(shard.ok()) << shard.status();
  const auto path = FinishCheckpoint(*partial, InfoAt(1), {*shard}, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto checkpoint = Checkpoint::Open(*path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const TensorSet read = set.Blank();
  ASSERT_TRUE(checkpoint->Read(read.tensors()).ok());
  EXPECT_EQ(read.Bytes(), set.Bytes());
}

TEST(Checkpoint, WorkersWithoutParametersOrMomentsWriteNoFile) {
  const TemporaryDirectory directory;
  const auto partial = BeginCheckpoint(directory.path(), 1);
  ASSERT_TRUE(partial.ok()) << partial.status();
  TensorSet set;
  set.Add("w", false, {2}, 1);  // sgd without momentum
  const auto first = WriteCheckpointShard(*partial, 0, 2, set.tensors());
  const auto second = WriteCheckpointShard(*partial, 1, 2, {});
  ASSERT_TRUE(first.ok() && second.ok());
  const auto path = FinishCheckpoint(*partial, InfoAt(1), {*first, *second}, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_THAT(NamesIn(*path), ElementsAre("model-00001-of-00002.safetensors",
                                          "model.safetensors.index.json", "siphon.json"));
  EXPECT_TRUE(Checkpoint::Open(*path).ok());
}

TEST(Checkpoint, TheIndexIsHuggingFaces) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 1, 2, 1, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const auto index = nlohmann::json::parse(ReadAll(*path + "/model.safetensors.index.json"));
  EXPECT_EQ(index.size(), 2u);
  EXPECT_EQ(index["metadata"]["total_size"], 4 * 3 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8));
  EXPECT_EQ(index["weight_map"].size(), 8u);
  EXPECT_EQ(index["weight_map"]["layer.3.weight"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["layer.4.weight"], "model-00002-of-00002.safetensors");
  const auto file = SafetensorsFile::Open(*path + "/model-00001-of-00002.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(Checkpoint, ShardsThatDoNotFitTogetherAreOurBug) {
  const TemporaryDirectory directory;
  const auto partial = BeginCheckpoint(directory.path(), 1);
  ASSERT_TRUE(partial.ok()) << partial.status();
  TensorSet set;
  set.Add("tied", false, {2}, 1);
  const auto first = WriteCheckpointShard(*partial, 0, 2, set.tensors());
  const auto second = WriteCheckpointShard(*partial, 1, 2, set.tensors());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(FinishCheckpoint(*partial, InfoAt(1), {*first, *second}, 0).status(),
            absl::InternalError("tensor 'tied' is in two shards: model-00001-of-00002.safetensors "
                                "and model-00002-of-00002.safetensors"));
  EXPECT_EQ(FinishCheckpoint(*partial, InfoAt(1), {*first}, 0).status(),
            absl::InternalError("shard of worker 0 of 2 among 1 shards, of which each worker has "
                                "one"));
  EXPECT_EQ(FinishCheckpoint(*partial, InfoAt(1), {*first, *first}, 0).status(),
            absl::InternalError("shard of worker 0 of 2 among 2 shards, of which each worker has "
                                "one"));
  AbandonCheckpoint(*partial);
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
}

TEST(Checkpoint, KeepsAsManyAsAskedAndAlwaysTheOneJustWritten) {
  const TemporaryDirectory directory;
  for (const int64_t step : {10, 20, 30, 40}) {
    ASSERT_TRUE(Save(directory.path(), step, 2, 1, 2).ok());
  }
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000030", "step-00000040"));
  ASSERT_TRUE(Save(directory.path(), 50, 2, 1, 1).ok());
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000050"));
  ASSERT_TRUE(Save(directory.path(), 60, 2, 1, 0).ok());
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000050", "step-00000060"));
}

TEST(Checkpoint, ARunStartedAfreshInTheSameDirectoryIsTheNewerOne) {
  const TemporaryDirectory directory;
  for (const int64_t step : {1000, 10, 20}) {
    ASSERT_TRUE(Save(directory.path(), step, 1, static_cast<int>(step), 2).ok());
  }
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010", "step-00000020"));
  EXPECT_EQ(NewestIntactStep(directory.path(), "afresh"), 20);
}

TEST(Checkpoint, OneThatIsBeingReadIsNotDeleted) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 10, 2, 10, 1);
  ASSERT_TRUE(path.ok()) << path.status();
  {
    const auto reading = Checkpoint::Open(*path);
    ASSERT_TRUE(reading.ok()) << reading.status();
    ASSERT_TRUE(Save(directory.path(), 20, 2, 20, 1).ok());
    EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010", "step-00000020"));
    const TensorSet read = AllLayers(10).Blank();
    EXPECT_TRUE(reading->Read(read.tensors()).ok());
    EXPECT_EQ(read.Bytes(), AllLayers(10).Bytes());
  }
  ASSERT_TRUE(Save(directory.path(), 30, 2, 30, 1).ok());
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000030"));
}

TEST(Checkpoint, TheSameStepAgainReplacesTheEarlierOne) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Save(directory.path(), 10, 4, 3, 0).ok());
  const auto path = Save(directory.path(), 10, 2, 10, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010"));
  EXPECT_EQ(NewestIntactStep(directory.path(), "replaced"), 10);
}

TEST(Checkpoint, TheSameStepIsReplacedAlsoWhereNamesCannotBeExchanged) {
  const TemporaryDirectory directory;
  FileOperations files = UnsyncedFiles();
  files.exchange = [](const char*, const char*) { return errno = EINVAL, -1; };
  ASSERT_TRUE(Save(directory.path(), 10, 4, 3, 0, files).ok());
  ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 0, files).ok());
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010"));
  EXPECT_EQ(NewestIntactStep(directory.path(), "replaced"), 10);
}

TEST(Checkpoint, SomethingElseOfThatNameIsNotOverwritten) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.Path("step-00000010"));
  WriteAll(directory.Path("step-00000010/thesis.tex"), "years");
  const auto path = Save(directory.path(), 10, 1, 10, 1);
  EXPECT_EQ(path.status(),
            absl::InvalidArgumentError(absl::StrCat(
                directory.Path("step-00000010"),
                ": is there and is not a checkpoint (it has no siphon.json); it is not "
                "overwritten: move it away or choose another checkpoint.directory")));
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("step-00000010"));
  EXPECT_EQ(ReadAll(directory.Path("step-00000010/thesis.tex")), "years");
}

TEST(Checkpoint, RemainsOfInterruptedSavesAreIgnoredAndThenRemoved) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 0).ok());
  for (const char* name : {".step-00000020.partial", ".step-00000005.removed"}) {
    fs::create_directory(directory.Path(name));
    WriteAll(directory.Path(absl::StrCat(name, "/model-00001-of-00002.safetensors")), "half");
  }
  fs::create_directory(directory.Path("notes"));
  EXPECT_EQ(NewestIntactStep(directory.path(), "interrupted"), 10);
  const auto partial = BeginCheckpoint(directory.path(), 20);
  ASSERT_TRUE(partial.ok()) << partial.status();
  EXPECT_THAT(NamesIn(directory.path()),
              ElementsAre(".step-00000020.partial", "notes", "step-00000010"));
  EXPECT_THAT(NamesIn(*partial), ElementsAre());
}

TEST(Checkpoint, ACrashBetweenTheTwoRenamesOfAReplacementLosesNothing) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Save(directory.path(), 10, 2, 10, 0).ok());
  fs::rename(directory.Path("step-00000010"), directory.Path(".step-00000010.replaced"));
  EXPECT_EQ(NewestIntactStep(directory.path(), "set aside"), 10);
  ASSERT_TRUE(BeginCheckpoint(directory.path(), 20).ok());
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre(".step-00000020.partial", "step-00000010"));
}

TEST(NewestCheckpoint, IsNotFoundWhereThereIsNone) {
  const TemporaryDirectory directory;
  EXPECT_EQ(NewestCheckpoint(directory.path()).status(),
            absl::NotFoundError(directory.path() + ": holds no complete checkpoint"));
  EXPECT_TRUE(absl::IsNotFound(NewestCheckpoint(directory.Path("none")).status()));
}

TEST(NewestCheckpoint, NamesADamagedOneThatMayBeTheNewest) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(Save(directory.path(), 10, 1, 10, 0).ok());
  ASSERT_TRUE(Save(directory.path(), 20, 1, 20, 0).ok());
  ASSERT_TRUE(Save(directory.path(), 30, 1, 30, 0).ok());
  WriteAll(directory.Path("step-00000010/siphon.json"), "{}");
  EXPECT_EQ(NewestIntactStep(directory.path(), "an old one is damaged"), 30);
  WriteAll(directory.Path("step-00000030/siphon.json"), "{");
  EXPECT_EQ(NewestCheckpoint(directory.path()).status(),
            absl::InvalidArgumentError(absl::StrCat(
                directory.Path("step-00000030/siphon.json"), ": is not valid JSON at byte 2; ",
                directory.Path("step-00000030"),
                " may be the newest checkpoint: repair it or move it away to continue from ",
                directory.Path("step-00000020"))));
}

TEST(Sidecar, IsTheSameAfterWritingAndParsing) {
  Sidecar sidecar{.info = InfoAt(3), .sequence = 12};
  sidecar.info.job_text = "a: \"quoted\"\r\n\n\tend without newline";
  sidecar.info.plan_text = "";
  sidecar.contents.files = {{"m.safetensors", {.size = 99, .checksum = 0}}};
  sidecar.contents.parameters = {
      {"w", {.file = "m.safetensors", .spec = "F32[2]", .checksum = ~uint64_t{0}}}};
  const auto text = SidecarText(sidecar);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto parsed = ParseSidecar(*text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->info, sidecar.info);
  EXPECT_EQ(parsed->sequence, 12);
  EXPECT_EQ(parsed->contents, sidecar.contents);
  EXPECT_THAT(*text, HasSubstr("\n  \"step\": 3,\n"));  // for people too
}

TEST(Sidecar, TextThatIsNotUtf8IsRefused) {
  Sidecar sidecar;
  sidecar.info.tokenizer = "\xff";
  EXPECT_TRUE(absl::IsInvalidArgument(SidecarText(sidecar).status()));
}

}  // namespace
}  // namespace siphon
