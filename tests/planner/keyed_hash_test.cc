#include "planner/keyed_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <set>

namespace siphon {
namespace {

TEST(KeyedGenerator, DrawsTheSequencePublishedForSplitMix64) {
  // The first five outputs for seed 1234567, as published with the reference implementation.
  KeyedGenerator generator(1234567);
  for (const uint64_t expected :
       {6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
        4593380528125082431ull, 16408922859458223821ull}) {
    EXPECT_EQ(generator.Next(), expected);
  }
}

TEST(KeyedGenerator, DrawsBelowTheBoundAndEveryNumberAboutEquallyOften) {
  KeyedGenerator generator(7);
  std::array<int, 6> counts{};
  for (int draw = 0; draw < 6000; ++draw) {
    const uint64_t number = generator.Below(6);
    ASSERT_LT(number, 6u);
    ++counts[number];
  }
  // Standard deviation is 29 draws.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(generator.Below(1), 0u);
}

TEST(KeyedGenerator, DrawsUniformNumbersFromZeroToOne) {
  KeyedGenerator generator(8);
  double sum = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    const double number = generator.Uniform();
    ASSERT_GE(number, 0.0);
    ASSERT_LT(number, 1.0);
    sum += number;
  }
  EXPECT_NEAR(sum / 4000, 0.5, 0.03);  // standard deviation 0.0046
}

TEST(KeyedHash, NeverChanges) {
  // Checkpoints resume with the same dropout masks only if these numbers stay.
  EXPECT_EQ(KeyedHash(RandomPurpose::kDropout, {1, 2, 3}),
            KeyedHash(RandomPurpose::kDropout, {1, 2, 3}));
  EXPECT_EQ(KeyedHash(RandomPurpose::kDropout, {1, 2, 3}), 281900673755306853ull);
  EXPECT_EQ(KeyedHash(RandomPurpose::kInitialWeight, 1, "transformer.wte.weight"),
            8839354980588937659ull);
}

TEST(KeyedHash, DependsOnPurposeOrderLengthAndEveryNumber) {
  std::set<uint64_t> hashes;
  int keys = 0;
  const auto add = [&](uint64_t hash) {
    hashes.insert(hash);
    ++keys;
  };
  add(KeyedHash(RandomPurpose::kDropout, {1, 2, 3}));
  add(KeyedHash(RandomPurpose::kDataOrder, {1, 2, 3}));
  add(KeyedHash(RandomPurpose::kDropout, {3, 2, 1}));
  add(KeyedHash(RandomPurpose::kDropout, {1, 2}));
  add(KeyedHash(RandomPurpose::kDropout, {1, 2, 3, 0}));
  add(KeyedHash(RandomPurpose::kDropout, {}));
  add(KeyedHash(RandomPurpose::kDropout, {0}));
  add(KeyedHash(RandomPurpose::kInitialWeight, 1, "ab"));
  add(KeyedHash(RandomPurpose::kInitialWeight, 1, "ba"));
  add(KeyedHash(RandomPurpose::kInitialWeight, 2, "ab"));
  for (uint64_t step = 0; step < 50; ++step) {
    for (uint64_t layer = 0; layer < 50; ++layer) {
      add(KeyedHash(RandomPurpose::kDropout, {7, step, layer}));
    }
  }
  EXPECT_EQ(hashes.size(), static_cast<size_t>(keys));
}

TEST(KeyedHash, FlipsAboutHalfOfTheBitsForOneBitOfAnyNumber) {
  int flipped = 0;
  for (int bit = 0; bit < 64; ++bit) {
    flipped += std::popcount(KeyedHash(RandomPurpose::kDropout, {5, 6}) ^
                             KeyedHash(RandomPurpose::kDropout, {5, 6 ^ (uint64_t{1} << bit)}));
  }
  EXPECT_NEAR(flipped / 64.0, 32.0, 2.5);  // standard deviation 0.5
}

TEST(FoldTo32, UsesBothHalves) {
  EXPECT_EQ(FoldTo32(0x00000001'00000002ull), 3u);
  EXPECT_NE(FoldTo32(0x00000001'00000000ull), FoldTo32(0));
}

}  // namespace
}  // namespace siphon
