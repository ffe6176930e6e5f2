// Megatron's .bin and .idx, written by hand, and every field that can be wrong in them.

#include <gtest/gtest.h>

#include "launch/data/dataset.h"
#include "tests/launch/data/data_fixture.h"

namespace siphon {
namespace {

template <typename T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// An index with its fields as they are to stand in the file.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;  // uint16
  std::vector<int32_t> lengths = {3, 2, 4};
  std::vector<int64_t> places = {0, 6, 10};
  std::vector<int64_t> borders = {0, 2, 3};

  std::string Bytes() const {
    std::string bytes = magic;
    Append(bytes, version);
    Append(bytes, type);
    Append(bytes, uint64_t{lengths.size()});
    Append(bytes, uint64_t{borders.size()});
    for (const int32_t length : lengths) Append(bytes, length);
    for (const int64_t place : places) Append(bytes, place);
    for (const int64_t border : borders) Append(bytes, border);
    return bytes;
  }
};

template <typename T>
std::string IdBytes(const std::vector<T>& ids) {
  std::string bytes;
  for (const T id : ids) Append(bytes, id);
  return bytes;
}

const std::vector<uint16_t> kNineIds = {10, 11, 12, 20, 21, 30, 31, 65535, 33};

DatasetOptions Tokens(const std::string& path) {
  DatasetOptions options;
  options.kind = "tokens";
  options.path = path;
  options.sequence_length = 4;
  options.validation_fraction = 0.5;
  return options;
}

class TokenData : public testing::Test {
 protected:
  // The message with which the files are refused, the folder's name cut out.
  std::string Refusal(const std::string& index, const std::string& ids) {
    folder_.Write("d.idx", index);
    folder_.Write("d.bin", ids);
    const auto vocabulary = DataVocabulary(Tokens(folder_.At("d")));
    if (vocabulary.ok()) return "accepted";
    std::string message(vocabulary.status().message());
    for (size_t at; (at = message.find(folder_.At(""))) != std::string::npos;) {
      message.erase(at, folder_.At("").size());
    }
    return message;
  }

  DataFolder folder_;
};

TEST_F(TokenData, ReadsAllSequencesAsOneStream) {
  folder_.Write("d.idx", Index().Bytes());
  folder_.Write("d.bin", IdBytes(kNineIds));
  for (const char* name : {"d", "d.bin", "d.idx"}) {
    const DatasetOptions options = Tokens(folder_.At(name));
    const auto vocabulary = DataVocabulary(options);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(*vocabulary, 65536);
    const auto data = OpenDataset(options, TokenModel(Objective::kNextToken, 4, *vocabulary));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(IdsOf(*data, Split::kTrain, 0),
              std::make_pair(Ids{10, 11, 12, 20}, Ids{11, 12, 20, 21}));
    EXPECT_EQ(IdsOf(*data, Split::kValidation, 0),
              std::make_pair(Ids{21, 30, 31, 65535}, Ids{30, 31, 65535, 33}));
  }
}

TEST_F(TokenData, ReadsEveryTypeOfId) {
  Index index;
  index.lengths = {5};
  index.borders = {0, 1};
  index.places = {0};
  const auto expect = [&](uint8_t type, const std::string& ids) {
    index.type = type;
    folder_.Write("d.idx", index.Bytes());
    folder_.Write("d.bin", ids);
    DatasetOptions options = Tokens(folder_.At("d"));
    options.validation_fraction = 0;
    const auto data = OpenDataset(options, TokenModel(Objective::kNextToken, 4, 128));
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(IdsOf(*data, Split::kTrain, 0), std::make_pair(Ids{1, 2, 3, 127}, Ids{2, 3, 127, 5}));
  };
  expect(1, IdBytes<uint8_t>({1, 2, 3, 127, 5}));
  expect(2, IdBytes<int8_t>({1, 2, 3, 127, 5}));
  expect(3, IdBytes<int16_t>({1, 2, 3, 127, 5}));
  expect(4, IdBytes<int32_t>({1, 2, 3, 127, 5}));
  expect(5, IdBytes<int64_t>({1, 2, 3, 127, 5}));
  expect(8, IdBytes<uint16_t>({1, 2, 3, 127, 5}));
}

TEST_F(TokenData, AcceptsTheModesOfMultimodalFiles) {
  EXPECT_EQ(Refusal(Index().Bytes() + std::string(3, '\0'), IdBytes(kNineIds)), "accepted");
}

TEST_F(TokenData, NeedsAVocabularyForItsLargestId) {
  folder_.Write("d.idx", Index().Bytes());
  folder_.Write("d.bin", IdBytes(kNineIds));
  const auto data =
      OpenDataset(Tokens(folder_.At("d")), TokenModel(Objective::kNextToken, 4, 65535));
  EXPECT_EQ(
      data.status().message(),
      "data.path " + folder_.At("d.bin") +
          " needs a vocabulary of 65536; the model's has 65535: set model.vocabulary to 65536 or "
          "more, or leave it out");
}

TEST_F(TokenData, RefusesAMissingHalf) {
  EXPECT_EQ(
      DataVocabulary(Tokens(folder_.At("d"))).status(),
      absl::NotFoundError("data.path " + folder_.At("d.idx") + ": No such file or directory"));
  folder_.Write("d.idx", Index().Bytes());
  EXPECT_EQ(
      DataVocabulary(Tokens(folder_.At("d.bin"))).status(),
      absl::NotFoundError("data.path " + folder_.At("d.bin") + ": No such file or directory"));
  EXPECT_EQ(
      DataVocabulary(Tokens("")).status(),
      absl::InvalidArgumentError("data.path is empty; write the path of a .bin and .idx pair"));
}

TEST_F(TokenData, RefusesAWrongHeader) {
  const std::string ids = IdBytes(kNineIds);
  Index index;
  index.magic = "MMIDIDY__";
  EXPECT_EQ(Refusal(index.Bytes(), ids),
            "data.path d.idx: does not begin with MMIDIDX; it is no index of Megatron's");
  index = Index();
  index.version = 2;
  EXPECT_EQ(Refusal(index.Bytes(), ids), "data.path d.idx: has version 2; known: 1");
  index = Index();
  index.type = 6;
  EXPECT_EQ(
      Refusal(index.Bytes(), ids),
      "data.path d.idx: has ids of type 6; known: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 "
      "uint16");
  EXPECT_EQ(Refusal(Index().Bytes().substr(0, 20), ids),
            "data.path d.idx: is cut off: 20 bytes, the header alone has 34");
}

TEST_F(TokenData, RefusesWrongLengths) {
  const std::string ids = IdBytes(kNineIds);
  const std::string whole = Index().Bytes();  // 34 + 3 x 12 + 3 x 8 = 94 bytes
  EXPECT_EQ(Refusal(whole.substr(0, 93), ids),
            "data.path d.idx: is cut off: 93 bytes; 3 sequences and 3 document borders take 94");
  EXPECT_EQ(Refusal(whole + "x", ids),
            "data.path d.idx: is too long: 95 bytes; 3 sequences and 3 document borders take 94");
  std::string absurd = whole;
  absurd.replace(18, 8, std::string(8, '\xFF'));
  EXPECT_EQ(
      Refusal(absurd, ids),
      "data.path d.idx: is cut off: 94 bytes for 18446744073709551615 sequences and 3 document "
      "borders");
  EXPECT_EQ(Refusal(whole, ids.substr(0, 16)),
            "data.path d.idx: its 3 sequences have 18 bytes, d.bin has 16");
  EXPECT_EQ(Refusal(whole, ids + "xx"),
            "data.path d.idx: its 3 sequences have 18 bytes, d.bin has 20");
}

TEST_F(TokenData, RefusesSequencesThatDoNotFollowEachOther) {
  const std::string ids = IdBytes(kNineIds);
  Index index;
  index.places[1] = 8;
  EXPECT_EQ(Refusal(index.Bytes(), ids),
            "data.path d.idx: sequence 1 begins at byte 8, the one before it ends at 6");
  index = Index();
  index.lengths[2] = -4;
  EXPECT_EQ(Refusal(index.Bytes(), ids), "data.path d.idx: sequence 2 has length -4");
  index = Index();
  index.borders = {0, 4, 3};
  EXPECT_EQ(Refusal(index.Bytes(), ids),
            "data.path d.idx: document border 1 is at sequence 4; must be from 0 to 3");
  index.borders = {0, 2, 1};
  EXPECT_EQ(Refusal(index.Bytes(), ids),
            "data.path d.idx: document border 2 is at sequence 1; must be from 2 to 3");
}

TEST_F(TokenData, RefusesNegativeIds) {
  Index index;
  index.type = 3;
  EXPECT_EQ(Refusal(index.Bytes(), IdBytes<int16_t>({1, 2, 3, 4, 5, -6, 7, 8, 9})),
            "data.path d.bin: token 5 is -6; ids count from 0");
}

TEST_F(TokenData, NoticesIdsThatChangeWhileInUse) {
  folder_.Write("d.idx", Index().Bytes());
  const std::string path = folder_.Write("d.bin", IdBytes<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto data = OpenDataset(Tokens(path), TokenModel(Objective::kNextToken, 4, 10));
  ASSERT_TRUE(data.ok()) << data.status();
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      << IdBytes<uint16_t>({1, 2, 99, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(
      ReadSample(*data, Split::kTrain, 0).status(),
      absl::InvalidArgumentError("data.path " + path +
                                 " has changed while in use: id 99; the model's vocabulary is 10"));
  EXPECT_TRUE(ReadSample(*data, Split::kValidation, 0).ok());
}

TEST_F(TokenData, NoticesIdsThatAreCutWhileInUse) {
  folder_.Write("d.idx", Index().Bytes());
  const std::string path = folder_.Write("d.bin", IdBytes<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto data = OpenDataset(Tokens(path), TokenModel(Objective::kNextToken, 4, 10));
  ASSERT_TRUE(data.ok()) << data.status();
  std::filesystem::resize_file(path, 4);
  EXPECT_EQ(ReadSample(*data, Split::kTrain, 0).status(),
            absl::InvalidArgumentError("data.path " + path +
                                       " has been cut while in use, from 18 to 4 bytes"));
}

}  // namespace
}  // namespace siphon
