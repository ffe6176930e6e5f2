#include "launch/checkpoint/safetensors.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

using testing::ElementsAre;

absl::Span<const std::byte> BytesOf(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

std::string ReadTensor(const SafetensorsFile& file, int tensor) {
  std::string bytes(static_cast<size_t>(file.tensors()[tensor].size), '\0');
  const absl::Status status =
      file.Read(tensor, absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()));
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TEST(Safetensors, WritesTheBytesOfASmallFileAsTheFormatSays) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.safetensors");
  const auto written = WriteSafetensors(path,
                                        {{"b", {DType::kUInt8, {3}}, BytesOf("xyz")},
                                         {"a", {DType::kFloat16, {1, 2}}, BytesOf("0123")}},
                                        {{"format", "pt"}});
  ASSERT_TRUE(written.ok()) << written.status();
  // Wide elements first, so that "a" is aligned; the JSON is padded to a multiple of 8.
  const std::string json = R"({"__metadata__":{"format":"pt"},)"
                           R"("a":{"data_offsets":[0,4],"dtype":"F16","shape":[1,2]},)"
                           R"("b":{"data_offsets":[4,7],"dtype":"U8","shape":[3]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  EXPECT_EQ(ReadAll(path), SafetensorsBytes(padded, "0123xyz"));
  EXPECT_EQ(written->size, static_cast<int64_t>(8 + padded.size() + 7));
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.safetensors");
  const std::vector<NamedTensor> tensors = {
      {"scalar", {DType::kFloat32, {}}, BytesOf("1234")},
      {"empty", {DType::kFloat32, {0, 5}}, {}},
      {"ids", {DType::kInt64, {2}}, BytesOf("0123456789abcdef")},
      {"größe", {DType::kBFloat16, {2, 1}}, BytesOf("ABCD")}};
  const auto written = WriteSafetensors(path, tensors, {{"a", "1"}, {"b", "zwei"}});
  ASSERT_TRUE(written.ok()) << written.status();
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata(), (std::map<std::string, std::string>{{"a", "1"}, {"b", "zwei"}}));
  EXPECT_EQ(file->size(), written->size);
  EXPECT_EQ(file->header_checksum(), written->header_checksum);
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (size_t stored = 0; stored < tensors.size(); ++stored) {
    bool found = false;
    for (const NamedTensor& tensor : tensors) {
      if (tensor.name != file->tensors()[stored].name) continue;
      found = true;
      EXPECT_EQ(file->tensors()[stored].spec, tensor.spec) << tensor.name;
      EXPECT_EQ(file->tensors()[stored].begin % ElementBytes(tensor.spec.dtype), 0) << tensor.name;
      const std::string bytes = ReadTensor(*file, static_cast<int>(stored));
      EXPECT_EQ(BytesOf(bytes), tensor.bytes) << tensor.name;
    }
    EXPECT_TRUE(found) << file->tensors()[stored].name;
  }
}

TEST(Safetensors, AFileWithoutTensorsIsAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("none.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {}, {}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Safetensors, ReadsTensorsThatAnotherWriterPutInAnotherOrder) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("other.safetensors");
  WriteAll(path, SafetensorsBytes(
                     R"({"late":{"shape":[2],"dtype":"U8","data_offsets":[4,6]},
                         "early":{"dtype":"F32","data_offsets":[0,4],"shape":[]}})",
                     "wxyzAB"));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors()[0].name, "early");
  EXPECT_EQ(ReadTensor(*file, 0), "wxyz");
  EXPECT_EQ(file->tensors()[1].name, "late");
  EXPECT_EQ(ReadTensor(*file, 1), "AB");
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.safetensors");
  const TensorSpec three{DType::kUInt8, {3}};
  const auto message = [&](const std::vector<NamedTensor>& tensors) {
    const auto written = WriteSafetensors(path, tensors, {});
    EXPECT_TRUE(absl::IsInvalidArgument(written.status())) << written.status();
    return std::string(written.status().message());
  };
  EXPECT_EQ(message({{"w", three, BytesOf("abc")}, {"w", three, BytesOf("abc")}}),
            path + ": tensor 'w': is there twice");
  EXPECT_EQ(message({{"w", three, BytesOf("ab")}}),
            path + ": tensor 'w': U8[3] needs 3 bytes, but 2 are given");
  EXPECT_EQ(message({{"__metadata__", three, BytesOf("abc")}}),
            path + ": tensor '__metadata__': the name belongs to the format");
  EXPECT_THAT(message({{"\xff", three, BytesOf("abc")}}),
              testing::StartsWith(path + ": a name is not UTF-8: "));
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre());
}

TEST(Safetensors, AFileThatIsNotThereIsNotFound) {
  const auto file = SafetensorsFile::Open("/nowhere/a.safetensors");
  EXPECT_TRUE(absl::IsNotFound(file.status()));
  EXPECT_EQ(file.status().message(),
            "/nowhere/a.safetensors: opening the file: No such file or directory");
}

}  // namespace
}  // namespace siphon
