#include "swap/memory_checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/planner/dice.h"

namespace siphon {
namespace {

std::vector<std::byte> DiceBytes(size_t bytes, int seed) {
  Dice dice(seed);
  std::vector<std::byte> random(bytes);
  for (std::byte& byte : random) byte = static_cast<std::byte>(dice.Roll(0, 255));
  return random;
}

// By the definition: 9 bytes are two words, the second one filled up with zeros.
TEST(MemoryChecksum, IsTheSumOfItsWordsAndOfItsSize) {
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}, std::byte{3},
                                        std::byte{4}, std::byte{5}, std::byte{6},
                                        std::byte{7}, std::byte{8}, std::byte{9}};
  EXPECT_EQ(MemoryChecksum(bytes),
            ChecksumOfSize(9) + ChecksumTerm(0x0807060504030201u, 0) + ChecksumTerm(0x09u, 1));
  EXPECT_EQ(MemoryChecksum({}), ChecksumOfSize(0));
  // (0 + 1 * 0x9E37...) times the factor, folded; computed with Python's integers.
  EXPECT_EQ(ChecksumTerm(0, 0), 0xC9D874CA57D9E055u);
  EXPECT_EQ(ChecksumTerm(0x0807060504030201u, 5), 0x696E1B2E20D44BC6u);
}

TEST(MemoryChecksum, SeesEveryBitEveryExchangeAndEverySize) {
  for (const size_t size : {1, 7, 8, 9, 64, 203}) {
    std::vector<std::byte> bytes = DiceBytes(size, static_cast<int>(size));
    std::set<uint64_t> sums = {MemoryChecksum(bytes)};
    size_t changes = 1;
    for (size_t bit = 0; bit < 8 * size; ++bit, ++changes) {
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      sums.insert(MemoryChecksum(bytes));
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
    for (size_t word = 16; word <= size; word += 8, ++changes) {
      const auto begin = bytes.begin() + static_cast<int64_t>(word) - 16;
      std::swap_ranges(begin, begin + 8, begin + 8);
      sums.insert(MemoryChecksum(bytes));
      std::swap_ranges(begin, begin + 8, begin + 8);
    }
    bytes.push_back(std::byte{0});
    sums.insert(MemoryChecksum(bytes));
    EXPECT_EQ(sums.size(), changes + 1) << size << " bytes";
  }
}

TEST(MemoryChecksum, DoesNotDependOnWhereBytesBegin) {
  const std::vector<std::byte> bytes = DiceBytes(100, 1);
  for (size_t begin = 1; begin < 9; ++begin) {
    std::vector<std::byte> moved(begin + bytes.size());
    std::copy(bytes.begin(), bytes.end(), moved.begin() + static_cast<int64_t>(begin));
    EXPECT_EQ(MemoryChecksum(absl::MakeConstSpan(moved).subspan(begin)), MemoryChecksum(bytes));
  }
}

}  // namespace
}  // namespace siphon
