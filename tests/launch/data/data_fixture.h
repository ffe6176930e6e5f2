#ifndef SIPHON_TESTS_LAUNCH_DATA_DATA_FIXTURE_H_
#define SIPHON_TESTS_LAUNCH_DATA_DATA_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/data/dataset.h"

namespace siphon {

// A folder of its own for each test, removed with it.
class DataFolder {
 public:
  DataFolder()
      : path_(absl::StrCat(testing::TempDir(), "/siphon_data_", getpid(), "_",
                           testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(path_);
  }
  ~DataFolder() { std::filesystem::remove_all(path_); }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(At(name), std::ios::binary) << bytes;
    return At(name);
  }
  std::string At(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What OpenDataset looks at of a model; no layers.
inline ModelSpec TokenModel(Objective objective, int64_t sequence_length, int64_t classes) {
  ModelSpec model;
  model.options.kind = objective == Objective::kMaskedToken ? "bert" : "gpt";
  model.objective = objective;
  model.input = model.target = {DType::kInt64, {sequence_length}};
  model.classes = classes;
  return model;
}

inline ModelSpec ImageModel(std::vector<int64_t> shape, int64_t classes) {
  ModelSpec model;
  model.options.kind = "plugin";
  model.objective = Objective::kClassification;
  model.input = {DType::kFloat32, std::move(shape)};
  model.target = {DType::kInt64, {}};
  model.classes = classes;
  return model;
}

// One sample with its numbers taken out of the bytes.
template <typename T>
std::vector<T> Numbers(absl::Span<const std::byte> bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

struct Sample {
  std::vector<std::byte> input;
  std::vector<std::byte> target;
};

inline absl::StatusOr<Sample> ReadSample(const Dataset& data, Split split, int64_t number,
                                         uint64_t key = 0) {
  Sample sample{std::vector<std::byte>(static_cast<size_t>(SizeOf(data.input).value)),
                std::vector<std::byte>(static_cast<size_t>(SizeOf(data.target).value))};
  const absl::Status status =
      data.read(split, number, key, absl::MakeSpan(sample.input), absl::MakeSpan(sample.target));
  if (!status.ok()) return status;
  return sample;
}

using Ids = std::vector<int64_t>;

// Input and target of one sample of ids.
inline std::pair<Ids, Ids> IdsOf(const Dataset& data, Split split, int64_t number,
                                 uint64_t key = 0) {
  const auto sample = ReadSample(data, split, number, key);
  EXPECT_TRUE(sample.ok()) << sample.status();
  if (!sample.ok()) return {};
  return {Numbers<int64_t>(sample->input), Numbers<int64_t>(sample->target)};
}

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_DATA_DATA_FIXTURE_H_
