#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/checkpoint.h"
#include "launch/checkpoint/checksum.h"
#include "launch/checkpoint/sidecar.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

constexpr char kModel[] = "model-00002-of-00002.safetensors";
constexpr char kOptimizer[] = "optimizer-00001-of-00002.safetensors";

// A good checkpoint of step 10, damaged by each test.
class DamagedCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = Save(directory_.path(), 10, 2, 10, 0);
    ASSERT_TRUE(path.ok()) << path.status();
    path_ = *path;
  }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  void Edit(const std::string& name, const std::string& from, const std::string& to) {
    const std::string bytes = ReadAll(Path(name));
    const size_t place = bytes.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    WriteAll(Path(name), std::string(bytes).replace(place, from.size(), to));
  }

  // Rewrites the sidecar with other values and the right checksum.
  void EditSidecar(const std::function<void(Sidecar&)>& edit) {
    auto sidecar = ParseSidecar(ReadAll(Path("siphon.json")));
    ASSERT_TRUE(sidecar.ok()) << sidecar.status();
    edit(*sidecar);
    WriteAll(Path("siphon.json"), *SidecarText(*sidecar));
  }

  // What Open, and if that works Read of all tensors, says.
  absl::Status Reading() const {
    const auto checkpoint = Checkpoint::Open(path_);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->Read(AllLayers(10).Blank().tensors());
  }

  void ExpectRefused(const std::string& message) const {
    EXPECT_EQ(Reading(), absl::InvalidArgumentError(message));
  }

  TemporaryDirectory directory_;
  std::string path_;
};

TEST_F(DamagedCheckpoint, TheUndamagedOneIsRead) { EXPECT_TRUE(Reading().ok()) << Reading(); }

TEST_F(DamagedCheckpoint, ATruncatedFileIsNamedWithTheTensorCutOff) {
  fs::resize_file(Path(kModel), fs::file_size(Path(kModel)) - 1);
  ExpectRefused(absl::StrCat(Path(kModel),
                             ": tensor 'layer.7.weight': bytes [216, 312) pass the end of the "
                             "data, which has 311 bytes: the file is truncated or damaged"));
}

TEST_F(DamagedCheckpoint, AnEmptyFileIsNamed) {
  WriteAll(Path(kOptimizer), "");
  ExpectRefused(absl::StrCat(Path(kOptimizer),
                             ": is 0 bytes long; a safetensors file begins with 8 bytes of header "
                             "length"));
}

TEST_F(DamagedCheckpoint, AnEditedByteIsNamedWithItsTensor) {
  std::string bytes = ReadAll(Path(kModel));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteAll(Path(kModel), bytes);
  const TensorSet all = AllLayers(10);
  for (const CheckpointTensor& tensor : all.tensors()) {
    if (tensor.name != "layer.7.weight") continue;
    const uint64_t before = Checksum(absl::Span<const std::byte>(tensor.bytes));
    tensor.bytes.back() ^= std::byte{1};
    const uint64_t after = Checksum(absl::Span<const std::byte>(tensor.bytes));
    ExpectRefused(absl::StrCat(Path(kModel),
                               ": tensor 'layer.7.weight': was edited or damaged: "
                               "its checksum is ",
                               ChecksumText(after), ", and siphon.json says ",
                               ChecksumText(before)));
  }
}

TEST_F(DamagedCheckpoint, OnlyWhatIsReadIsVerified) {
  std::string bytes = ReadAll(Path(kModel));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteAll(Path(kModel), bytes);
  const auto checkpoint = Checkpoint::Open(path_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->Read(LayersOf(0, 2, 10).Blank().tensors()).ok());
  EXPECT_FALSE(checkpoint->Read(LayersOf(1, 2, 10).Blank().tensors()).ok());
}

TEST_F(DamagedCheckpoint, AMissingFileIsNamed) {
  fs::remove(Path(kModel));
  ExpectRefused(Path(kModel) + ": is missing: siphon.json lists it");
}

TEST_F(DamagedCheckpoint, AMissingIndexIsNamed) {
  fs::remove(Path(kIndexName));
  ExpectRefused(Path(kIndexName) + ": is missing: siphon.json lists it");
}

TEST_F(DamagedCheckpoint, ADirectoryWithoutSidecarIsForeign) {
  fs::remove(Path("siphon.json"));
  ExpectRefused(path_ + " is not a Siphon checkpoint: it has no siphon.json");
}

TEST_F(DamagedCheckpoint, ADirectoryOfCheckpointsSaysWhichToTake) {
  EXPECT_EQ(Checkpoint::Open(directory_.path()).status(),
            absl::InvalidArgumentError(
                absl::StrCat(directory_.path(),
                             " is not a Siphon checkpoint: it has no siphon.json; it holds "
                             "checkpoints, the newest is ",
                             path_)));
}

TEST_F(DamagedCheckpoint, APathThatIsNotThereIsNotFound) {
  EXPECT_EQ(Checkpoint::Open(directory_.Path("none")).status(),
            absl::NotFoundError(directory_.Path("none") + ": no such checkpoint"));
  EXPECT_EQ(Checkpoint::Open(Path(kModel)).status(),
            absl::InvalidArgumentError(Path(kModel) + ": is a file; a checkpoint is a directory"));
}

TEST_F(DamagedCheckpoint, AnotherFilesSidecarIsForeign) {
  WriteAll(Path("siphon.json"), R"({"format": "something else", "version": 1})");
  ExpectRefused(Path("siphon.json") +
                ": is not the sidecar of a Siphon checkpoint: it does not say \"format\": "
                "\"siphon checkpoint\"");
}

TEST_F(DamagedCheckpoint, ANewerFormatVersionIsRefusedByNumber) {
  Edit("siphon.json", "\"version\": 1", "\"version\": 2");
  ExpectRefused(Path("siphon.json") +
                ": has format version 2, and this program reads versions up to 1: a newer Siphon "
                "wrote it");
}

TEST_F(DamagedCheckpoint, AnEditedSidecarIsFoundByItsOwnChecksum) {
  Edit("siphon.json", "\"step\": 10", "\"step\": 11");
  const absl::Status status = Reading();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      StartsWith(Path("siphon.json") + ": was edited or damaged: its values have checksum "));
}

TEST_F(DamagedCheckpoint, OtherBlanksInTheSidecarChangeNothing) {
  WriteAll(Path("siphon.json"),
           absl::StrReplaceAll(ReadAll(Path("siphon.json")), {{"\n  ", "\r\n\t"}}));
  EXPECT_TRUE(Reading().ok()) << Reading();
}

TEST_F(DamagedCheckpoint, AKeyThatIsTwiceInTheSidecarIsRefused) {
  Edit("siphon.json", "\"step\": 10", "\"step\": 10, \"step\": 10");
  ExpectRefused(Path("siphon.json") + ": the key 'step' is there twice");
}

TEST_F(DamagedCheckpoint, ASidecarThatPointsOutsideItsFolderIsRefused) {
  EditSidecar([](Sidecar& sidecar) { sidecar.contents.files["../etc/passwd"] = {}; });
  ExpectRefused(Path("siphon.json") +
                ": files: '../etc/passwd' is not the name of a file in the same folder");
}

TEST_F(DamagedCheckpoint, ATensorThatTheFileLacksIsNamed) {
  EditSidecar([](Sidecar& sidecar) {
    sidecar.contents.parameters["extra"] = {.file = kModel, .spec = "F32[1]"};
  });
  ExpectRefused(Path(kModel) + ": tensor 'extra' is missing: siphon.json lists it");
}

TEST_F(DamagedCheckpoint, ATensorThatTheSidecarLacksIsNamed) {
  EditSidecar([](Sidecar& sidecar) { sidecar.contents.parameters.erase("layer.5.weight"); });
  ExpectRefused(Path(kModel) +
                ": tensor 'layer.5.weight': is not listed for this file in siphon.json");
}

TEST_F(DamagedCheckpoint, AnEditedShapeIsNamedWithItsTensor) {
  Edit(kModel, "[3,8]", "[8,3]");
  ExpectRefused(Path(kModel) +
                ": tensor 'layer.7.weight': is F32[8, 3], and siphon.json says F32[3, 8]");
}

TEST_F(DamagedCheckpoint, AnEditThatLeavesTheTensorsAloneIsFoundToo) {
  Edit(kModel, "\"pt\"", "\"tf\"");
  const absl::Status status = Reading();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              StartsWith(Path(kModel) + ": its header was edited: its checksum is "));
}

TEST_F(DamagedCheckpoint, AFileFromAnotherCheckpointIsFound) {
  const TemporaryDirectory other;
  const auto path = Save(other.path(), 10, 2, 11, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  fs::copy_file(*path + "/" + kModel, Path(kModel), fs::copy_options::overwrite_existing);
  const absl::Status status = Reading();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              StartsWith(Path(kModel) + ": tensor 'layer.4.weight': was edited or damaged: "));
}

TEST_F(DamagedCheckpoint, AnIndexThatDisagreesIsNamedWithTheTensor) {
  const std::string good = ReadAll(Path(kIndexName));
  Edit(kIndexName, absl::StrCat("\"layer.6.weight\": \"", kModel, "\""),
       "\"layer.6.weight\": \"model-00001-of-00002.safetensors\"");
  ExpectRefused(Path(kIndexName) +
                ": tensor 'layer.6.weight' is said to be in model-00001-of-00002.safetensors, but "
                "is in model-00002-of-00002.safetensors");
  WriteAll(Path(kIndexName), absl::StrReplaceAll(good, {{"layer.6", "layer.9"}}));
  ExpectRefused(Path(kIndexName) + ": tensor 'layer.6.weight' is missing");
  WriteAll(
      Path(kIndexName),
      absl::StrReplaceAll(good, {{"\"weight_map\": {",
                                  absl::StrCat("\"weight_map\": {\"more\": \"", kModel, "\",")}}));
  ExpectRefused(Path(kIndexName) + ": tensor 'more' is not in the checkpoint");
  WriteAll(Path(kIndexName), absl::StrReplaceAll(good, {{"432", "431"}}));
  ExpectRefused(Path(kIndexName) + ": says total_size 431, but the tensors have 432 bytes");
  WriteAll(Path(kIndexName), good + "\n");
  ExpectRefused(Path(kIndexName) + ": was edited: its checksum is not that in siphon.json");
}

TEST_F(DamagedCheckpoint, AModelThatNeedsOtherTensorsIsTold) {
  const auto checkpoint = Checkpoint::Open(path_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  TensorSet absent, moment, reshaped;
  absent.Add("lm_head.weight", false, {3}, 0);
  EXPECT_EQ(checkpoint->Read(absent.tensors()),
            absl::InvalidArgumentError(path_ + ": tensor 'lm_head.weight' is not in the "
                                               "checkpoint, which is of another model"));
  moment.Add("layer.0.weight.momentum", true, {3, 1}, 0);
  EXPECT_EQ(checkpoint->Read(moment.tensors()),
            absl::InvalidArgumentError(path_ + ": tensor 'layer.0.weight.momentum' is not in the "
                                               "checkpoint, which holds no such optimizer state"));
  reshaped.Add("layer.4.weight", false, {5, 3}, 0);
  EXPECT_EQ(checkpoint->Read(reshaped.tensors()),
            absl::InvalidArgumentError(Path(kModel) + ": tensor 'layer.4.weight': is F32[3, 5], "
                                                      "and the model needs F32[5, 3]"));
}

// Every byte of every file, cut and flipped: never a crash, never a wrong byte taken for a right
// one.
class EveryByteOfACheckpoint : public DamagedCheckpoint {
 protected:
  void SetUp() override {
    const auto partial = BeginCheckpoint(directory_.path(), 1, UnsyncedFiles());
    ASSERT_TRUE(partial.ok()) << partial.status();
    set_.Add("w", false, {2, 1}, 1);
    set_.Add("w.exp_avg", true, {2, 1}, 2);
    const auto shard = WriteCheckpointShard(*partial, 0, 1, set_.tensors(), UnsyncedFiles());
    ASSERT_TRUE(shard.ok()) << shard.status();
    const auto path = FinishCheckpoint(*partial, InfoAt(1), {*shard}, 0, UnsyncedFiles());
    ASSERT_TRUE(path.ok()) << path.status();
    path_ = *path;
  }

  absl::Status Reading() const {
    const auto checkpoint = Checkpoint::Open(path_);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->Read(set_.Blank().tensors());
  }

  void ExpectRefused(const std::string& what) const {
    const absl::Status status = Reading();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << what << ": " << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(path_ + "/")) << what;
  }

  TensorSet set_;
};

TEST_F(EveryByteOfACheckpoint, UndamagedIsRead) { EXPECT_TRUE(Reading().ok()) << Reading(); }

TEST_F(EveryByteOfACheckpoint, FlippedIsRefused) {
  for (const std::string& name : NamesIn(path_)) {
    const std::string good = ReadAll(Path(name));
    for (size_t place = 0; place < good.size(); ++place) {
      std::string bytes = good;
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << (place % 8)));
      WriteAll(Path(name), bytes);
      ExpectRefused(absl::StrCat(name, " byte ", place));
    }
    WriteAll(Path(name), good);
  }
}

TEST_F(EveryByteOfACheckpoint, CutIsRefused) {
  for (const std::string& name : NamesIn(path_)) {
    const std::string good = ReadAll(Path(name));
    // The newline at the end of the sidecar carries nothing.
    const size_t longest = good.size() - (name == kSidecarName ? 1 : 0);
    for (size_t length = 0; length < longest; ++length) {
      WriteAll(Path(name), good.substr(0, length));
      ExpectRefused(absl::StrCat(name, " cut to ", length));
    }
    WriteAll(Path(name), good);
  }
}

}  // namespace
}  // namespace siphon
