#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/checkpoint/safetensors.h"
#include "tests/launch/checkpoint/checkpoint_testing.h"

namespace siphon {
namespace {

struct HostileFile {
  std::string what;
  std::string json;
  int data_bytes = 0;
  std::string message;  // in whole, after "<path>: "
};

const HostileFile kHostileFiles[] = {
    {"no JSON", "hello", 0, "the header is not valid JSON at its byte 1"},
    {"empty header", "", 0, "the header is not valid JSON at its byte 1"},
    {"a list", "[]", 0, "the header is a list, not an object"},
    {"a number", "7", 0, "the header is 7, not an object"},
    {"null", "null", 0, "the header is null, not an object"},
    {"cut JSON", R"({"w":{"dtype":"U8")", 0, "the header is not valid JSON at its byte 19"},
    {"two values", R"({}{})", 0, "the header is not valid JSON at its byte 3"},
    {"bad UTF-8", "{\"\xff\":{}}", 0, "the header is not valid JSON at its byte 3"},
    {"tensor is text", R"({"w":"U8"})", 0, "tensor 'w': \"U8\" where an object belongs"},
    {"tensor is null", R"({"w":null})", 0, "tensor 'w': null where an object belongs"},
    {"no dtype", R"({"w":{"shape":[1],"data_offsets":[0,1]}})", 1, "tensor 'w': has no dtype"},
    {"no shape", R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1, "tensor 'w': has no shape"},
    {"no offsets", R"({"w":{"dtype":"U8","shape":[1]}})", 1, "tensor 'w': has no data_offsets"},
    {"unknown dtype", R"({"w":{"dtype":"F99","shape":[1],"data_offsets":[0,1]}})", 1,
     "tensor 'w': unknown type 'F99'; known: F32, BF16, F16, I64, U8"},
    {"dtype is a number", R"({"w":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'dtype' holds 8 where text belongs"},
    {"shape is a number", R"({"w":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds 1 where a list of whole numbers >= 0 belongs"},
    {"shape is text", R"({"w":{"dtype":"U8","shape":"1","data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds \"1\" where a list of whole numbers >= 0 belongs"},
    {"negative extent", R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds -1 where a list of whole numbers >= 0 belongs"},
    {"fraction", R"({"w":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds 1.5 where a list of whole numbers >= 0 belongs"},
    {"list in a list", R"({"w":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds a list where a list of whole numbers >= 0 belongs"},
    {"extent beyond 63 bits",
     R"({"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", 1,
     "tensor 'w': shape holds 9223372036854775808, which overflows 63 bits"},
    {"extent beyond 64 bits",
     R"({"w":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'shape' holds 99999999999999999999 where a list of whole numbers >= 0 belongs"},
    {"shape product overflows",
     R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     "tensor 'w': the shape [4294967296, 4294967296] overflows 63 bits"},
    {"size differs", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
     "tensor 'w': F32[2] needs 8 bytes, but data_offsets [0, 4] hold 4"},
    {"one offset", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1,
     "tensor 'w': data_offsets holds 1 numbers instead of two"},
    {"three offsets", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
     "tensor 'w': data_offsets holds more than two numbers"},
    {"offsets backwards", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1,
     "tensor 'w': data_offsets end before they begin: [1, 0]"},
    {"past the end", R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3,
     "tensor 'w': bytes [0, 4) pass the end of the data, which has 3 bytes: the file is truncated "
     "or damaged"},
    {"gap at the start", R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
     "tensor 'w': begins at byte 1 of the data, leaving a gap after byte 0"},
    {"gap",
     R"({"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
     3, "tensor 'w': begins at byte 2 of the data, leaving a gap after byte 1"},
    {"overlap",
     R"({"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
     3, "tensor 'w': begins at byte 1 of the data, inside the tensor before, which ends at byte 2"},
    {"extra bytes", R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 5,
     "3 extra bytes after the last tensor, which ends at byte 2 of the data"},
    {"bytes without tensors", "{}", 1,
     "1 extra bytes after the last tensor, which ends at byte 0 of the data"},
    {"a name twice",
     R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2, "tensor 'w': is there twice"},
    {"a key twice", R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
     "tensor 'w': 'dtype' is there twice"},
    {"unknown key", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1,
     "tensor 'w': unknown key 'x'; dtype, shape and data_offsets belong there"},
    {"metadata is a list", R"({"__metadata__":[]})", 0,
     "__metadata__: a list where an object belongs"},
    {"metadata holds a number", R"({"__metadata__":{"a":1}})", 0,
     "__metadata__: 'a' holds 1 where text belongs"},
    {"metadata holds an object", R"({"__metadata__":{"a":{}}})", 0,
     "__metadata__: 'a' holds an object where text belongs"},
    {"metadata key twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0,
     "__metadata__: 'a' is there twice"},
    {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0,
     "__metadata__: is there twice"},
};

TEST(HostileSafetensors, EachIsRefusedWithItsMessage) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("hostile.safetensors");
  for (const HostileFile& hostile : kHostileFiles) {
    WriteAll(path, SafetensorsBytes(hostile.json, std::string(hostile.data_bytes, 'x')));
    const auto file = SafetensorsFile::Open(path);
    EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << hostile.what << ": " << file.status();
    EXPECT_EQ(file.status().message(), absl::StrCat(path, ": ", hostile.message)) << hostile.what;
  }
}

TEST(HostileSafetensors, HeaderLengthsBeyondTheFileOrTheLimitAreRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("hostile.safetensors");
  const auto message = [&](const std::string& bytes) {
    WriteAll(path, bytes);
    const auto file = SafetensorsFile::Open(path);
    EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << file.status();
    return std::string(file.status().message());
  };
  EXPECT_EQ(message(""), path +
                             ": is 0 bytes long; a safetensors file begins with 8 bytes of header "
                             "length");
  EXPECT_EQ(message("1234567"),
            path + ": is 7 bytes long; a safetensors file begins with 8 bytes of header length");
  EXPECT_EQ(
      message(std::string("\x09\0\0\0\0\0\0\0", 8) + "{}      "),
      path + ": the header claims 9 bytes, but only 8 follow: the file is truncated or damaged");
  EXPECT_EQ(message(std::string(8, '\xff') + "{}"),
            path + ": the header claims 18446744073709551615 bytes; at most 100000000 are allowed");
}

TEST(HostileSafetensors, DeepNestingAndManyDimensionsEndAtOnce) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("hostile.safetensors");
  WriteAll(path, SafetensorsBytes(std::string(10'000'000, '['), ""));
  EXPECT_EQ(SafetensorsFile::Open(path).status().message(),
            path + ": the header is a list, not an object");
  std::string ones = "1";
  for (int dimension = 1; dimension < 65; ++dimension) ones += ",1";
  WriteAll(path,
           SafetensorsBytes(absl::StrCat(R"({"w":{"dtype":"U8","shape":[)", ones, "]}}"), ""));
  EXPECT_EQ(SafetensorsFile::Open(path).status().message(),
            path + ": tensor 'w': more than 64 dimensions");
}

TEST(HostileSafetensors, APlaceThatIsNoFileIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_EQ(SafetensorsFile::Open(directory.path()).status().message(),
            directory.path() + ": is not a file");
}

TEST(HostileSafetensors, AFileCutShortAfterItWasOpenedIsAnErrorAndNotASignal) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.safetensors");
  WriteAll(path, SafetensorsBytes(R"({"w":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})",
                                  "123456789"));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, static_cast<uintmax_t>(file->size()) - 4);
  std::vector<std::byte> bytes(9);
  EXPECT_EQ(file->Read(0, absl::MakeSpan(bytes)),
            absl::InvalidArgumentError(
                absl::StrCat(path, ": tensor 'w': the file ends at byte ", file->size() - 4,
                             ", with 4 more to read: it was truncated after it was opened")));
}

// Whatever happens to a byte: no crash, and either the file still makes sense or the refusal names
// it.
class EveryByte : public testing::Test {
 protected:
  void SetUp() override {
    path_ = directory_.Path("a.safetensors");
    const TensorSet set = LayersOf(0, 4, 1);
    std::vector<NamedTensor> tensors;
    for (const CheckpointTensor& tensor : set.tensors()) {
      tensors.push_back({tensor.name, tensor.spec, tensor.bytes});
    }
    ASSERT_TRUE(WriteSafetensors(path_, tensors, {{"format", "pt"}}).ok());
    good_ = ReadAll(path_);
    const auto file = SafetensorsFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    header_bytes_ = static_cast<size_t>(file->tensors()[0].begin);
  }

  absl::Status Open(const std::string& bytes) {
    WriteAll(path_, bytes);
    const absl::Status status = SafetensorsFile::Open(path_).status();
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), testing::StartsWith(path_ + ": "));
    }
    return status;
  }

  TemporaryDirectory directory_;
  std::string path_, good_;
  size_t header_bytes_ = 0;
};

TEST_F(EveryByte, CutAnywhereIsRefused) {
  for (size_t length = 0; length < good_.size(); ++length) {
    EXPECT_FALSE(Open(good_.substr(0, length)).ok()) << "cut to " << length;
  }
}

TEST_F(EveryByte, FlippedAnywhereIsRefusedOrStillAFile) {
  for (size_t place = 0; place < header_bytes_; ++place) {
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string bytes = good_;
      bytes[place] = static_cast<char>(bytes[place] ^ flip);
      const absl::Status status = Open(bytes);
      if (place < 8) {
        EXPECT_FALSE(status.ok()) << "byte " << place << " of the length ^ " << flip;
      }
    }
  }
}

}  // namespace
}  // namespace siphon
