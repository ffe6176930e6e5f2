#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/checkpoint.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

namespace fs = std::filesystem;

constexpr char kOneFloat[] = R"({"h.0.w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

TensorSet Wanted(const std::string& name, const std::vector<int64_t>& shape) {
  TensorSet set;
  set.Add(name, false, shape, 0);
  return set;
}

std::vector<CheckpointTensor> ParametersOf(const TensorSet& set) {
  std::vector<CheckpointTensor> parameters;
  for (const CheckpointTensor& tensor : set.tensors()) {
    if (!tensor.optimizer) parameters.push_back(tensor);
  }
  return parameters;
}

TEST(InitialWeights, ComeFromOneFile) {
  const TemporaryDirectory directory;
  WriteAll(directory.Path("any.safetensors"), SafetensorsBytes(kOneFloat, "abcd"));
  const TensorSet wanted = Wanted("h.0.w", {1});
  const absl::Status status =
      ReadInitialWeights(directory.Path("any.safetensors"), wanted.tensors());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(wanted.Bytes(), "abcd");
}

TEST(InitialWeights, ComeFromAFolderWithOneModelFile) {
  const TemporaryDirectory directory;
  WriteAll(directory.Path("model.safetensors"), SafetensorsBytes(kOneFloat, "abcd"));
  const TensorSet wanted = Wanted("h.0.w", {1});
  ASSERT_TRUE(ReadInitialWeights(directory.path(), wanted.tensors()).ok());
  EXPECT_EQ(wanted.Bytes(), "abcd");
}

TEST(InitialWeights, AreFoundUnderTheirNameWithoutTheHeadsPrefix) {
  const TemporaryDirectory directory;
  WriteAll(directory.Path("model.safetensors"), SafetensorsBytes(kOneFloat, "abcd"));
  const TensorSet wanted = Wanted("transformer.h.0.w", {1});
  ASSERT_TRUE(ReadInitialWeights(directory.path(), wanted.tensors()).ok());
  EXPECT_EQ(wanted.Bytes(), "abcd");
}

TEST(InitialWeights, ComeFromAFolderWithHuggingFacesIndex) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 1, 4, 9, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  fs::remove(*path + "/siphon.json");  // now it is like any other model's folder
  const TensorSet all = AllLayers(9), read = all.Blank();
  const absl::Status status = ReadInitialWeights(*path, ParametersOf(read));
  ASSERT_TRUE(status.ok()) << status;
  for (size_t index = 0; index < all.tensors().size(); ++index) {
    const bool equal = all.tensors()[index].bytes == read.tensors()[index].bytes;
    EXPECT_EQ(equal, !all.tensors()[index].optimizer) << all.tensors()[index].name;
  }
}

TEST(InitialWeights, OfACheckpointAreVerified) {
  const TemporaryDirectory directory;
  const auto path = Save(directory.path(), 1, 1, 9, 0);
  ASSERT_TRUE(path.ok()) << path.status();
  const TensorSet read = AllLayers(9).Blank();
  ASSERT_TRUE(ReadInitialWeights(*path, ParametersOf(read)).ok());
  const std::string file = *path + "/model-00001-of-00001.safetensors";
  std::string bytes = ReadAll(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteAll(file, bytes);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadInitialWeights(*path, ParametersOf(read))));
}

TEST(InitialWeights, SayWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string& folder = directory.path();
  const TensorSet wanted = Wanted("h.0.w", {1});
  EXPECT_EQ(ReadInitialWeights(directory.Path("none"), wanted.tensors()),
            absl::NotFoundError(directory.Path("none") +
                                ": opening the file: No such file or directory"));
  EXPECT_EQ(ReadInitialWeights(folder, wanted.tensors()),
            absl::InvalidArgumentError(
                folder + ": holds neither model.safetensors.index.json nor model.safetensors"));
  WriteAll(directory.Path("model.safetensors"), SafetensorsBytes(kOneFloat, "abcd"));
  EXPECT_EQ(ReadInitialWeights(folder, Wanted("other", {1}).tensors()),
            absl::InvalidArgumentError(folder + ": tensor 'other' is not there, among 1 tensors"));
  EXPECT_EQ(
      ReadInitialWeights(folder, Wanted("h.0.w", {1, 1}).tensors()),
      absl::InvalidArgumentError(directory.Path("model.safetensors") +
                                 ": tensor 'h.0.w': is F32[1], and the model needs F32[1, 1]"));
  const std::string index = directory.Path("model.safetensors.index.json");
  WriteAll(index, R"({"weight_map": {"h.0.w": "gone.safetensors"}})");
  EXPECT_EQ(ReadInitialWeights(folder, wanted.tensors()),
            absl::InvalidArgumentError(
                directory.Path("gone.safetensors") +
                ": is missing: model.safetensors.index.json names it for tensor 'h.0.w'"));
  WriteAll(index, R"({"weight_map": {"h.0.w": "../model.safetensors"}})");
  EXPECT_EQ(ReadInitialWeights(folder, wanted.tensors()),
            absl::InvalidArgumentError(index + ": weight_map: 'h.0.w': '../model.safetensors' is "
                                               "not the name of a file in the same folder"));
  WriteAll(index, R"({"weight_map": {"h.0.w": 3}})");
  EXPECT_EQ(ReadInitialWeights(folder, wanted.tensors()),
            absl::InvalidArgumentError(index + ": weight_map: 'h.0.w' is 3, not text"));
  WriteAll(index, R"({"metadata": {}})");
  EXPECT_EQ(ReadInitialWeights(folder, wanted.tensors()),
            absl::InvalidArgumentError(index + ": has no 'weight_map'"));
}

}  // namespace
}  // namespace siphon
