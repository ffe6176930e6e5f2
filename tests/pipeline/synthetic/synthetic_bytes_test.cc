// The parts of a synthetic stage: bytes that stand for contents, blocks on the books, paced work.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/synthetic/booked_block.h"
#include "pipeline/synthetic/keyed_bytes.h"
#include "pipeline/synthetic/work_clock.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"

namespace siphon {
namespace {

constexpr uint64_t kKey = 0x1234567890ABCDEFull;

TEST(KeyedBytes, EveryChangedByteIsFoundAtItsPlace) {
  for (const size_t size : {1u, 7u, 8u, 9u, 64u, 77u}) {
    std::vector<std::byte> bytes(size);
    FillKeyed(absl::MakeSpan(bytes), kKey);
    EXPECT_EQ(FirstDifference(bytes, kKey), std::nullopt);
    for (size_t place = 0; place < size; ++place) {
      bytes[place] ^= std::byte{1};
      EXPECT_EQ(FirstDifference(bytes, kKey), place) << "of " << size;
      bytes[place] ^= std::byte{1};
    }
  }
  EXPECT_EQ(FirstDifference({}, kKey), std::nullopt);
}

TEST(KeyedBytes, TheFirstOnesAreThoseOfASmallerSize) {
  std::vector<std::byte> bytes(100);
  FillKeyed(absl::MakeSpan(bytes), kKey);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(FirstDifference(absl::MakeSpan(bytes).first(size), kKey), std::nullopt);
  }
}

TEST(KeyedBytes, OtherKeysGiveOtherBytesInEveryWord) {
  std::vector<std::byte> bytes(4096);
  FillKeyed(absl::MakeSpan(bytes), kKey);
  for (const uint64_t other : {kKey + 1, kKey << 1, kKey ^ (uint64_t{1} << 63)}) {
    std::vector<std::byte> others(bytes.size());
    FillKeyed(absl::MakeSpan(others), other);
    for (size_t word = 0; word < bytes.size(); word += 8) {
      EXPECT_NE(std::memcmp(&bytes[word], &others[word], 8), 0) << "word " << word / 8;
    }
  }
}

TEST(BookedBlock, StandsOnTheBooksAsLongAsItLives) {
  MemoryLedger ledger(Bytes(100));
  {
    absl::StatusOr<BookedBlock> block =
        BookedBlock::Take(&ledger, Bytes(60), MemoryKind::kActivations);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->bytes().data()) % 64, 0u);
    EXPECT_EQ(ledger.UsedByKind()[MemoryKind::kActivations], Bytes(60));
    EXPECT_EQ(
        BookedBlock::Take(&ledger, Bytes(41), MemoryKind::kBoundary).status(),
        absl::ResourceExhaustedError("asked for 41 B of boundary, but 40 B of 100 B are free"));
    BookedBlock moved = *std::move(block);
    EXPECT_EQ(ledger.used(), Bytes(60));
    absl::StatusOr<BookedBlock> other =
        BookedBlock::Take(&ledger, Bytes(40), MemoryKind::kBoundary);
    ASSERT_TRUE(other.ok()) << other.status();
    moved = *std::move(other);  // what it had goes
    EXPECT_EQ(ledger.used(), Bytes(40));
    EXPECT_EQ(ledger.UsedByKind()[MemoryKind::kActivations], Bytes(0));
  }
  EXPECT_EQ(ledger.used(), Bytes(0));
  EXPECT_EQ(ledger.peak(), Bytes(100));
}

TEST(BookedBlock, GrowsAndShrinksByTheDifference) {
  MemoryLedger ledger(Bytes(100));
  absl::StatusOr<BookedBlock> block =
      BookedBlock::Take(&ledger, Bytes(50), MemoryKind::kActivations);
  ASSERT_TRUE(block.ok()) << block.status();
  FillKeyed(block->bytes(), kKey);
  EXPECT_FALSE(block->Resize(Bytes(101)).ok());
  EXPECT_EQ(block->size(), Bytes(50));
  EXPECT_EQ(ledger.peak(), Bytes(50));
  ASSERT_TRUE(block->Resize(Bytes(90)).ok());  // both at once would not fit
  EXPECT_EQ(FirstDifference(block->bytes().first(50), kKey), std::nullopt);
  EXPECT_EQ(ledger.used(), Bytes(90));
  ASSERT_TRUE(block->Resize(Bytes(3)).ok());
  EXPECT_EQ(FirstDifference(block->bytes(), kKey), std::nullopt);
  EXPECT_EQ(ledger.used(), Bytes(3));
  ASSERT_TRUE(block->Resize(Bytes(0)).ok());
  EXPECT_EQ(ledger.used(), Bytes(0));
}

// A piece that ends late (the clock moves on by itself) is made up for; a wait is not.
TEST(PacedWork, PiecesEndWhenTheirTimesHavePassedSinceTheBegin) {
  const auto now = std::make_shared<Nanos>(1000);
  const WorkClock clock = StandingClock(now);
  PacedWork work(clock);
  work.Take(Nanos(10));
  EXPECT_EQ(*now, Nanos(1010));
  *now += Nanos(15);  // it took longer
  work.Take(Nanos(10));
  EXPECT_EQ(*now, Nanos(1025));
  work.Take(Nanos(10));
  EXPECT_EQ(*now, Nanos(1030));
  *now += Nanos(100);  // a wait
  work.Resume();
  work.Take(Nanos(10));
  EXPECT_EQ(*now, Nanos(1140));
}

TEST(MonotonicClock, NeverWakesEarly) {
  const WorkClock clock = MonotonicClock();
  const Nanos begin = clock.now();
  clock.sleep_until(begin - Nanos(1));
  PacedWork work(clock);
  for (int piece = 1; piece <= 20; ++piece) {
    work.Take(Nanos(50'000));
    EXPECT_GE(clock.now(), begin + Nanos(50'000) * piece);
  }
}

}  // namespace
}  // namespace siphon
