// Order of samples, independence of the batch's size, layout of a batch.

#include "launch/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "launch/data/keyed_permutation.h"
#include "tests/launch/data/data_fixture.h"

namespace siphon {
namespace {

// Sample n is [n, n], target [n, key % 1000]: a batch shows which samples it took, and their keys.
Dataset Numbered(int64_t training, int64_t validation) {
  Dataset data;
  data.input = data.target = {DType::kInt64, {2}};
  data.training_samples = training;
  data.validation_samples = validation;
  data.read = [](Split split, int64_t sample, uint64_t key, absl::Span<std::byte> input,
                 absl::Span<std::byte> target) {
    const int64_t number = split == Split::kTrain ? sample : sample + 1'000'000;
    const int64_t in[2] = {number, number};
    const int64_t out[2] = {number, static_cast<int64_t>(key % 1000)};
    std::memcpy(input.data(), in, sizeof(in));
    std::memcpy(target.data(), out, sizeof(out));
    return absl::OkStatus();
  };
  return data;
}

// (sample, key) of all of a batch's samples, in order.
std::vector<std::pair<int64_t, int64_t>> Contents(const absl::StatusOr<Batch>& batch) {
  EXPECT_TRUE(batch.ok()) << batch.status();
  std::vector<std::pair<int64_t, int64_t>> contents;
  if (!batch.ok()) return contents;
  for (const Batch::Microbatch& microbatch : batch->microbatches) {
    const Ids target = Numbers<int64_t>(microbatch.target);
    for (size_t i = 0; i < target.size(); i += 2) contents.emplace_back(target[i], target[i + 1]);
  }
  return contents;
}

std::vector<std::pair<int64_t, int64_t>> Consumed(const Dataset& data, BatchShape shape,
                                                  uint64_t seed, int64_t from, int64_t to) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (int64_t at = from; at < to; at += shape.global_batch) {
    for (const auto& entry : Contents(TrainingBatch(data, shape, seed, at))) all.push_back(entry);
  }
  all.resize(static_cast<size_t>(to - from));
  return all;
}

TEST(KeyedPermutation, HasEveryValueOnceForEverySize) {
  for (uint64_t size = 1; size < 300; ++size) {
    const KeyedPermutation permutation(size, size);
    std::set<uint64_t> values;
    for (uint64_t place = 0; place < size; ++place) values.insert(permutation(place));
    EXPECT_EQ(values.size(), size);
    EXPECT_LT(*values.rbegin(), size);
  }
}

TEST(KeyedPermutation, SpreadsValuesOverPlaces) {
  // Chi-squared of the value at place 0 over 2,000 keys, 20 cells: 19 degrees of freedom, so that
  // 50 is exceeded by chance once in 7,000 times; the keys are fixed.
  constexpr uint64_t kSize = 20;
  constexpr uint64_t kKeys = 2000;
  for (uint64_t place = 0; place < kSize; ++place) {
    std::vector<double> counts(kSize);
    for (uint64_t key = 0; key < kKeys; ++key) ++counts[KeyedPermutation(key, kSize)(place)];
    double chi_squared = 0;
    for (const double count : counts) chi_squared += (count - 100) * (count - 100) / 100;
    EXPECT_LT(chi_squared, 50) << place;
  }
}

TEST(TrainingBatch, TakesEachSampleOnceAnEpochAndEachEpochInAnotherOrder) {
  const Dataset data = Numbered(50, 0);
  const auto all = Consumed(data, {10, 5}, 3, 0, 150);
  std::vector<std::vector<int64_t>> orders;
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (size_t i = 0; i < 50; ++i) order.push_back(all[epoch * 50 + i].first);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 50u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

TEST(TrainingBatch, OrderAndKeysDoNotDependOnTheBatchSize) {
  const Dataset data = Numbered(37, 0);
  const auto one_by_one = Consumed(data, {1, 1}, 9, 0, 200);
  EXPECT_EQ(Consumed(data, {8, 2}, 9, 0, 200), one_by_one);
  EXPECT_EQ(Consumed(data, {100, 25}, 9, 0, 200), one_by_one);  // larger than an epoch
  const std::vector<std::pair<int64_t, int64_t>> later(one_by_one.begin() + 63, one_by_one.end());
  EXPECT_EQ(Consumed(data, {5, 5}, 9, 63, 200), later);
}

TEST(TrainingBatch, OrderAndKeysDependOnTheSeed) {
  const Dataset data = Numbered(37, 0);
  EXPECT_NE(Consumed(data, {37, 1}, 1, 0, 37), Consumed(data, {37, 1}, 2, 0, 37));
}

TEST(TrainingBatch, MasksOfASampleDifferFromEpochToEpoch) {
  const auto all = Consumed(Numbered(1, 0), {4, 4}, 1, 0, 4);
  std::set<int64_t> keys;
  for (const auto& [sample, key] : all) keys.insert(key);
  EXPECT_EQ(keys.size(), 4u);
}

TEST(TrainingBatch, MicrobatchesAreAlignedAndShaped) {
  const auto batch = TrainingBatch(Numbered(50, 0), {9, 3}, 1, 0);  // 48 bytes a microbatch
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->microbatches.size(), 3u);
  EXPECT_EQ(ToString(batch->input_spec), "I64[3, 2]");
  EXPECT_EQ(ToString(batch->target_spec), "I64[3, 2]");
  EXPECT_EQ(batch->target_count, 18);
  for (const Batch::Microbatch& microbatch : batch->microbatches) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(microbatch.input.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(microbatch.target.data()) % 64, 0u);
    EXPECT_EQ(microbatch.input.size(), 48u);
    EXPECT_EQ(microbatch.target.size(), 48u);
  }
}

TEST(TrainingBatch, CountsTargetsOfTheGlobalBatchWithoutIgnoredOnes) {
  const DataFolder folder;
  DatasetOptions options;
  options.path = folder.Write("a.txt", std::string(64 * 40, 'a'));
  options.sequence_length = 64;
  options.validation_fraction = 0;
  const auto data = OpenDataset(options, TokenModel(Objective::kMaskedToken, 64, 257));
  ASSERT_TRUE(data.ok()) << data.status();
  const auto batch = TrainingBatch(*data, {20, 5}, 1, 0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  int64_t count = 0;
  for (const Batch::Microbatch& microbatch : batch->microbatches) {
    for (const int64_t id : Numbers<int64_t>(microbatch.target))
      count += id != kIgnoredTarget ? 1 : 0;
  }
  EXPECT_EQ(batch->target_count, count);
  EXPECT_GT(count, 20 * 64 / 10);
  EXPECT_LT(count, 20 * 64 / 5);
}

TEST(TrainingBatch, MovingKeepsTheSpansValid) {
  auto batch = TrainingBatch(Numbered(50, 0), {4, 2}, 1, 0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::byte* before = batch->microbatches[1].input.data();
  const Batch moved = *std::move(batch);
  EXPECT_EQ(moved.microbatches[1].input.data(), before);
  EXPECT_GE(before, moved.memory.get());
}

TEST(TrainingBatch, IsTheSameFromSeveralThreads) {
  const Dataset data = Numbered(1000, 0);
  const auto expected = Contents(TrainingBatch(data, {64, 16}, 5, 980));
  std::vector<std::vector<std::pair<int64_t, int64_t>>> found(4);
  std::vector<std::thread> threads;
  for (auto& contents : found) {
    threads.emplace_back([&] { contents = Contents(TrainingBatch(data, {64, 16}, 5, 980)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& contents : found) EXPECT_EQ(contents, expected);
}

TEST(TrainingBatch, RefusesShapesAndPositionsThatAreNone) {
  const Dataset data = Numbered(10, 0);
  EXPECT_EQ(
      TrainingBatch(data, {6, 4}, 1, 0).status(),
      absl::InvalidArgumentError("global batch 6 is not a positive multiple of microbatch 4"));
  EXPECT_EQ(
      TrainingBatch(data, {4, 0}, 1, 0).status(),
      absl::InvalidArgumentError("global batch 4 is not a positive multiple of microbatch 0"));
  EXPECT_EQ(TrainingBatch(data, {4, 2}, 1, -1).status(),
            absl::InvalidArgumentError("no training batch of 4 at sample -1 of 10"));
  EXPECT_EQ(
      TrainingBatch(data, {4, 2}, 1, INT64_MAX).status(),
      absl::InvalidArgumentError("no training batch of 4 at sample 9223372036854775807 of 10"));
}

TEST(ValidationBatch, TakesWholeBatchesInTheOrderOfTheFile) {
  const Dataset data = Numbered(10, 11);
  const BatchShape shape{4, 2};
  EXPECT_EQ(ValidationBatchCount(data, shape), 2);
  const auto contents = Contents(ValidationBatch(data, shape, 1, 1));
  ASSERT_EQ(contents.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(contents[static_cast<size_t>(i)].first, 1'000'004 + i);
  EXPECT_EQ(Contents(ValidationBatch(data, shape, 1, 1)), contents) << "masks must not change";
  EXPECT_EQ(ValidationBatch(data, shape, 1, 2).status(),
            absl::InvalidArgumentError("no validation batch 2; 11 samples make 2 batches of 4"));
}

}  // namespace
}  // namespace siphon
