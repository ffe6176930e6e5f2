// Windows of a text, its split, and every way in which a file is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/data/dataset.h"
#include "tests/launch/data/data_fixture.h"

namespace siphon {
namespace {

DatasetOptions Text(const std::string& path, int64_t sequence_length, double fraction) {
  DatasetOptions options;
  options.path = path;
  options.sequence_length = sequence_length;
  options.validation_fraction = fraction;
  return options;
}

std::string Refusal(const DatasetOptions& options, const ModelSpec& model) {
  const auto data = OpenDataset(options, model);
  return data.ok() ? "accepted" : data.status().ToString();
}

TEST(TextData, CutsWindowsThatShareOneByteByHand) {
  const DataFolder folder;
  const std::string path = folder.Write("a.txt", "abcdefghijklmn\xFF");
  const auto data = OpenDataset(Text(path, 4, 0.3), TokenModel(Objective::kNextToken, 4, 256));
  ASSERT_TRUE(data.ok()) << data.status();
  // 15 bytes: windows at 0, 4 and 8; the one at 12 would lack targets. The last third validates.
  EXPECT_EQ(data->training_samples, 2);
  EXPECT_EQ(data->validation_samples, 1);
  EXPECT_EQ(IdsOf(*data, Split::kTrain, 0),
            std::make_pair(Ids{'a', 'b', 'c', 'd'}, Ids{'b', 'c', 'd', 'e'}));
  EXPECT_EQ(IdsOf(*data, Split::kTrain, 1),
            std::make_pair(Ids{'e', 'f', 'g', 'h'}, Ids{'f', 'g', 'h', 'i'}));
  EXPECT_EQ(IdsOf(*data, Split::kValidation, 0),
            std::make_pair(Ids{'i', 'j', 'k', 'l'}, Ids{'j', 'k', 'l', 'm'}));
}

TEST(TextData, ReadsAnyByte) {
  const DataFolder folder;
  std::string bytes;
  for (int value = 0; value < 257; ++value) bytes += static_cast<char>(value);
  const auto data = OpenDataset(Text(folder.Write("a.bin", bytes), 256, 0),
                                TokenModel(Objective::kNextToken, 256, 256));
  ASSERT_TRUE(data.ok()) << data.status();
  const auto [input, target] = IdsOf(*data, Split::kTrain, 0);
  EXPECT_EQ(input[255], 255);
  EXPECT_EQ(target[254], 255);
  EXPECT_EQ(target[255], 0);
}

// Of memory behind a file's end, the rest of a page is zeros, and what comes then a SIGBUS.
TEST(TextData, NoticesAFileThatIsCutWhileInUse) {
  for (const int64_t left : {0, 9'000, 19'999}) {
    const DataFolder folder;
    const std::string path = folder.Write("a.txt", std::string(20'000, 'a'));
    const auto data = OpenDataset(Text(path, 99, 0.05), TokenModel(Objective::kNextToken, 99, 256));
    ASSERT_TRUE(data.ok()) << data.status();
    ASSERT_TRUE(ReadSample(*data, Split::kValidation, data->validation_samples - 1).ok());
    std::filesystem::resize_file(path, static_cast<uintmax_t>(left));
    const auto cut = absl::InvalidArgumentError(absl::StrCat(
        "data.path ", path, " has been cut while in use, from 20000 to ", left, " bytes"));
    EXPECT_EQ(ReadSample(*data, Split::kTrain, 0).status(), cut);
    EXPECT_EQ(ReadSample(*data, Split::kValidation, data->validation_samples - 1).status(), cut);
    std::filesystem::resize_file(path, 30'000);  // more is no matter
    EXPECT_TRUE(ReadSample(*data, Split::kTrain, 0).ok());
  }
}

TEST(TextData, MaskedWindowsNeedNoLastTarget) {
  const DataFolder folder;
  const std::string path = folder.Write("a.txt", "abcdefgh");
  const auto data = OpenDataset(Text(path, 4, 0.5), TokenModel(Objective::kMaskedToken, 4, 257));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->training_samples, 1);
  EXPECT_EQ(data->validation_samples, 1);
}

TEST(TextData, HasTwoHundredFiftySixIds) {
  EXPECT_EQ(*DataVocabulary(Text("nowhere.txt", 4, 0)), 256);
}

TEST(TextData, RefusesFilesThatAreNone) {
  const DataFolder folder;
  const ModelSpec model = TokenModel(Objective::kNextToken, 4, 256);
  const std::string missing = folder.At("missing.txt");
  EXPECT_EQ(Refusal(Text(missing, 4, 0), model),
            "NOT_FOUND: data.path " + missing + ": No such file or directory");
  EXPECT_EQ(Refusal(Text("", 4, 0), model),
            "INVALID_ARGUMENT: data.path is empty; write the path of a file");
  EXPECT_EQ(Refusal(Text(folder.At(""), 4, 0), model),
            "INVALID_ARGUMENT: data.path " + folder.At("") + " is a directory; write a file");
  EXPECT_EQ(Refusal(Text("/dev/null", 4, 0), model),
            "INVALID_ARGUMENT: data.path /dev/null is no regular file; write a file");
  const std::string empty = folder.Write("empty.txt", "");
  EXPECT_EQ(Refusal(Text(empty, 4, 0), model),
            "INVALID_ARGUMENT: data.path " + empty + " is empty");
}

TEST(TextData, RefusesLessThanOneSequenceInEitherSplit) {
  const DataFolder folder;
  const ModelSpec model = TokenModel(Objective::kNextToken, 4, 256);
  const std::string four = folder.Write("four.txt", "abcd");
  const std::string five = folder.Write("five.txt", "abcde");
  const std::string nine = folder.Write("nine.txt", "abcdefghi");
  EXPECT_EQ(Refusal(Text(four, 4, 0), model),
            "INVALID_ARGUMENT: data.path " + four +
                " has 4 bytes; one sequence needs 5 (data.sequence_length 4 and the last target)");
  EXPECT_EQ(Refusal(Text(five, 4, 0), model), "accepted");
  EXPECT_EQ(Refusal(Text(five, 4, 0.1), model),
            "INVALID_ARGUMENT: data.path " + five +
                " has 5 bytes; one sequence to train and one to validate need 9 (or set "
                "data.validation_fraction to 0)");
  EXPECT_EQ(Refusal(Text(nine, 4, 0.1), model), "accepted");
  EXPECT_EQ(Refusal(Text(nine, 4, 0.99), model), "accepted");
}

TEST(TextData, RefusesModelsThatDoNotFit) {
  const DataFolder folder;
  const std::string path = folder.Write("a.txt", "abcdefgh");
  EXPECT_EQ(
      Refusal(Text(path, 4, 0), TokenModel(Objective::kNextToken, 4, 255)),
      "INVALID_ARGUMENT: data.path " + path +
          " needs a vocabulary of 256; the model's has 255: set model.vocabulary to 256 or more, "
          "or leave it out");
  EXPECT_EQ(Refusal(Text(path, 4, 0), TokenModel(Objective::kMaskedToken, 4, 256)),
            "INVALID_ARGUMENT: data.path " + path +
                " needs a vocabulary of 257 (mask id included); the model's has 256: set "
                "model.vocabulary to 257 or more, or leave it out");
  EXPECT_EQ(Refusal(Text(path, 4, 0), ImageModel({3, 8, 8}, 10)),
            "INVALID_ARGUMENT: data.kind text makes sequences, I64[4] with a target for each; "
            "model plugin "
            "takes F32[3, 8, 8] and target I64[]");
  EXPECT_EQ(
      Refusal(Text(path, 4, 0), TokenModel(Objective::kNextToken, 5, 256)),
      "INVALID_ARGUMENT: data.kind text makes sequences, I64[4] with a target for each; model gpt "
      "takes I64[5] and target I64[5]");
}

TEST(TextData, RefusesOptionsThatAreNone) {
  const ModelSpec model = TokenModel(Objective::kNextToken, 4, 256);
  DatasetOptions options = Text("a.txt", 0, 0);
  EXPECT_EQ(Refusal(options, model),
            "INVALID_ARGUMENT: data.sequence_length 0; must be at least 1");
  options = Text("a.txt", 4, 1);
  EXPECT_EQ(Refusal(options, model),
            "INVALID_ARGUMENT: data.validation_fraction 1; must be at least 0 and below 1");
  options.kind = "films";
  EXPECT_THAT(Refusal(options, model),
              testing::StartsWith("NOT_FOUND: data.kind 'films' is not known; known: "));
}

TEST(TextData, RefusesSamplesAndBuffersThatAreNone) {
  const DataFolder folder;
  const auto data = OpenDataset(Text(folder.Write("a.txt", "abcdefghi"), 4, 0.5),
                                TokenModel(Objective::kNextToken, 4, 256));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(ReadSample(*data, Split::kTrain, 1).status(),
            absl::InvalidArgumentError("no training sample 1; there are 1"));
  EXPECT_EQ(ReadSample(*data, Split::kValidation, -1).status(),
            absl::InvalidArgumentError("no validation sample -1; there are 1"));
  std::vector<std::byte> input(24), target(32);
  EXPECT_EQ(
      data->read(Split::kTrain, 0, 0, absl::MakeSpan(input), absl::MakeSpan(target)),
      absl::InvalidArgumentError("a sample's buffer has 24 bytes; 4 ids of 8 bytes go into it"));
}

TEST(TextData, FingerprintChangesWithContentAndOptions) {
  const DataFolder folder;
  const ModelSpec model = TokenModel(Objective::kNextToken, 4, 256);
  const auto fingerprint = [&](const std::string& bytes, int64_t length, double fraction) {
    const auto data = OpenDataset(Text(folder.Write("a.txt", bytes), length, fraction),
                                  TokenModel(Objective::kNextToken, length, 256));
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? data->fingerprint : "";
  };
  std::string large(400'000, 'x');
  const std::string first = fingerprint(large, 4, 0.1);
  EXPECT_EQ(fingerprint(large, 4, 0.1), first);
  EXPECT_NE(fingerprint(large, 5, 0.1), first);
  EXPECT_NE(fingerprint(large, 4, 0.2), first);
  EXPECT_NE(fingerprint(large + "x", 4, 0.1), first);
  for (const size_t place : {size_t{0}, large.size() / 63 * 31, large.size() - 1}) {
    std::string edited = large;
    edited[place] = 'y';
    EXPECT_NE(fingerprint(edited, 4, 0.1), first) << place;
  }
}

}  // namespace
}  // namespace siphon
