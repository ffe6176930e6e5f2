// Synthetic data is deterministic, differs by seed, and can be learnt by the simplest predictors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "launch/data/dataset.h"
#include "tests/launch/data/data_fixture.h"

namespace siphon {
namespace {

DatasetOptions Synthetic(int64_t samples, double fraction, uint64_t seed = 1) {
  DatasetOptions options;
  options.kind = "synthetic";
  options.sequence_length = 64;
  options.samples = samples;
  options.validation_fraction = fraction;
  options.seed = seed;
  return options;
}

TEST(SyntheticData, TokensAreLearntByCountingPairs) {
  constexpr int64_t kClasses = 20;
  const auto data =
      OpenDataset(Synthetic(100, 0.2), TokenModel(Objective::kNextToken, 64, kClasses));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->training_samples, 80);
  EXPECT_EQ(data->validation_samples, 20);
  std::map<std::pair<int64_t, int64_t>, double> pairs;
  std::map<int64_t, double> firsts;
  for (int64_t sample = 0; sample < data->training_samples; ++sample) {
    const auto [input, target] = IdsOf(*data, Split::kTrain, sample);
    for (size_t i = 0; i < input.size(); ++i) {
      ++pairs[{input[i], target[i]}];
      ++firsts[input[i]];
      if (i > 0) {
        EXPECT_EQ(input[i], target[i - 1]);
      }
    }
  }
  double loss = 0;
  double count = 0;
  for (int64_t sample = 0; sample < data->validation_samples; ++sample) {
    const auto [input, target] = IdsOf(*data, Split::kValidation, sample);
    for (size_t i = 0; i < input.size(); ++i) {
      const double probability = (pairs[{input[i], target[i]}] + 0.1) / (firsts[input[i]] + 2);
      loss -= std::log(probability);
      ++count;
    }
  }
  // Chance is log 20 = 3.0; the chain's own entropy about 0.6.
  EXPECT_LT(loss / count, 1.0);
  EXPECT_EQ(firsts.size(), static_cast<size_t>(kClasses));
}

TEST(SyntheticData, LabelsAreLearntByTheNearestMean) {
  constexpr int64_t kClasses = 5;
  const auto data = OpenDataset(Synthetic(250, 0.2), ImageModel({3, 6, 6}, kClasses));
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(108));
  std::vector<double> counts(kClasses);
  for (int64_t number = 0; number < data->training_samples; ++number) {
    const auto sample = ReadSample(*data, Split::kTrain, number);
    ASSERT_TRUE(sample.ok()) << sample.status();
    const auto label = static_cast<size_t>(Numbers<int64_t>(sample->target)[0]);
    const std::vector<float> image = Numbers<float>(sample->input);
    for (size_t i = 0; i < image.size(); ++i) means[label][i] += image[i];
    ++counts[label];
  }
  int right = 0;
  for (int64_t number = 0; number < data->validation_samples; ++number) {
    const auto sample = ReadSample(*data, Split::kValidation, number);
    ASSERT_TRUE(sample.ok()) << sample.status();
    const std::vector<float> image = Numbers<float>(sample->input);
    std::vector<double> distance(kClasses);
    for (size_t label = 0; label < kClasses; ++label) {
      for (size_t i = 0; i < image.size(); ++i) {
        distance[label] += std::pow(image[i] - means[label][i] / counts[label], 2);
      }
    }
    const auto nearest = std::min_element(distance.begin(), distance.end()) - distance.begin();
    right += nearest == Numbers<int64_t>(sample->target)[0] ? 1 : 0;
  }
  EXPECT_GT(right, 45) << "of 50; chance is 10";
}

TEST(SyntheticData, MaskedTokensUseTheLastIdAsMask) {
  const auto data = OpenDataset(Synthetic(20, 0), TokenModel(Objective::kMaskedToken, 64, 10));
  ASSERT_TRUE(data.ok()) << data.status();
  bool masked = false;
  for (int64_t sample = 0; sample < 20; ++sample) {
    const auto [input, target] = IdsOf(*data, Split::kTrain, sample, /*key=*/5);
    for (size_t i = 0; i < input.size(); ++i) {
      EXPECT_TRUE(input[i] >= 0 && input[i] < 10);
      EXPECT_TRUE(target[i] == kIgnoredTarget || (target[i] >= 0 && target[i] < 9)) << target[i];
      masked |= input[i] == 9 && target[i] != kIgnoredTarget;
    }
  }
  EXPECT_TRUE(masked);
}

TEST(SyntheticData, IsAFunctionOfSeedAndNumber) {
  const ModelSpec model = TokenModel(Objective::kNextToken, 64, 50);
  const auto first = OpenDataset(Synthetic(10, 0), model);
  const auto again = OpenDataset(Synthetic(10, 0), model);
  const auto other = OpenDataset(Synthetic(10, 0, 2), model);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(IdsOf(*first, Split::kTrain, 3), IdsOf(*again, Split::kTrain, 3));
  EXPECT_NE(IdsOf(*first, Split::kTrain, 3), IdsOf(*first, Split::kTrain, 4));
  EXPECT_NE(IdsOf(*first, Split::kTrain, 3), IdsOf(*other, Split::kTrain, 3));
  EXPECT_EQ(first->fingerprint, again->fingerprint);
  EXPECT_NE(first->fingerprint, other->fingerprint);
}

TEST(SyntheticData, TakesTheModelsVocabulary) { EXPECT_EQ(*DataVocabulary(Synthetic(10, 0)), 0); }

TEST(SyntheticData, RefusesWhatItCannotMake) {
  EXPECT_EQ(
      OpenDataset(Synthetic(1, 0.5), TokenModel(Objective::kNextToken, 4, 8)).status().message(),
      "data.samples 1 leaves 1 to validate and none to train; write 2 or more");
  EXPECT_EQ(
      OpenDataset(Synthetic(9, 0), TokenModel(Objective::kNextToken, 4, 1)).status().message(),
      "data.kind synthetic makes sequences of at least two different ids (and a mask id) with as "
      "many targets; model gpt takes I64[4], target I64[4], classes 1");
  ModelSpec model = ImageModel({4}, 3);
  model.input.dtype = DType::kInt64;
  EXPECT_EQ(OpenDataset(Synthetic(9, 0), model).status().message(),
            "data.kind synthetic makes F32 inputs of any shape with one I64 label each; model "
            "plugin takes "
            "I64[4], target I64[], classes 3");
}

}  // namespace
}  // namespace siphon
