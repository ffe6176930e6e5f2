#include "swap/memory_ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace siphon {
namespace {

TEST(MemoryLedger, CountsWhatIsUsedAndItsPeak) {
  MemoryLedger ledger(Bytes(100));
  EXPECT_TRUE(ledger.Take(Bytes(60)));
  EXPECT_TRUE(ledger.Take(Bytes(40)));
  ledger.Give(Bytes(60));
  EXPECT_EQ(ledger.used(), Bytes(40));
  EXPECT_EQ(ledger.peak(), Bytes(100));
  EXPECT_EQ(ledger.capacity(), Bytes(100));
}

TEST(MemoryLedger, RefusesWhatExceedsTheCapacityAndChangesNothing) {
  MemoryLedger ledger(Bytes(100));
  ASSERT_TRUE(ledger.Take(Bytes(60)));
  EXPECT_FALSE(ledger.Take(Bytes(41)));
  EXPECT_EQ(ledger.used(), Bytes(60));
  EXPECT_EQ(ledger.peak(), Bytes(60));
  EXPECT_TRUE(ledger.Take(Bytes(40)));
}

TEST(MemoryLedger, HasNoLimitAtCapacityZero) {
  MemoryLedger ledger(Bytes(0));
  EXPECT_TRUE(ledger.Take(Bytes(int64_t{1} << 50)));
  EXPECT_EQ(ledger.peak(), Bytes(int64_t{1} << 50));
}

TEST(MemoryLedger, CountsThePeakAnewFromWhatIsUsed) {
  MemoryLedger ledger(Bytes(100));
  ASSERT_TRUE(ledger.Take(Bytes(90)));
  ledger.Give(Bytes(70));
  ledger.ResetPeak();
  EXPECT_EQ(ledger.peak(), Bytes(20));
  ASSERT_TRUE(ledger.Take(Bytes(5)));
  EXPECT_EQ(ledger.peak(), Bytes(25));
}

TEST(MemoryLedger, StaysWithinItsCapacityUnderManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  MemoryLedger ledger(Bytes(3 * 7));  // room for three of the four
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&ledger] {
      for (int round = 0; round < kRounds; ++round) {
        if (ledger.Take(Bytes(7))) ledger.Give(Bytes(7));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.used(), Bytes(0));
  EXPECT_LE(ledger.peak(), Bytes(3 * 7));
  EXPECT_GE(ledger.peak(), Bytes(7));
}

}  // namespace
}  // namespace siphon
