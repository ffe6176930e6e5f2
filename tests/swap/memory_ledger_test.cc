#include "swap/memory_ledger.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/types/span.h"

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

TEST(MemoryLedger, CountsEachKindByItself) {
  MemoryLedger ledger(Bytes(100));
  ASSERT_TRUE(ledger.Take(Bytes(30), MemoryKind::kParameters));
  ASSERT_TRUE(ledger.Take(Bytes(50), MemoryKind::kActivations));
  ledger.Give(Bytes(50), MemoryKind::kActivations);
  ASSERT_TRUE(ledger.Take(Bytes(60), MemoryKind::kBoundary));
  EXPECT_FALSE(ledger.Take(Bytes(11), MemoryKind::kWorkspace));
  EXPECT_EQ(ledger.UsedByKind()[MemoryKind::kParameters], Bytes(30));
  EXPECT_EQ(ledger.UsedByKind()[MemoryKind::kActivations], Bytes(0));
  EXPECT_EQ(ledger.UsedByKind()[MemoryKind::kWorkspace], Bytes(0));
  EXPECT_EQ(Total(ledger.UsedByKind()), ledger.used());
  EXPECT_EQ(ledger.PeakByKind()[MemoryKind::kActivations], Bytes(50));
  EXPECT_EQ(ledger.PeakByKind()[MemoryKind::kBoundary], Bytes(60));
  EXPECT_EQ(ledger.PeakByKind()[MemoryKind::kWorkspace], Bytes(0));
  EXPECT_EQ(ledger.peak(), Bytes(90));  // less than the kinds' peaks together
  ledger.ResetPeak();
  EXPECT_EQ(ledger.PeakByKind(), ledger.UsedByKind());
}

TEST(MemoryKindScope, NestsAndBelongsToItsThread) {
  EXPECT_EQ(MemoryKindScope::Current(), MemoryKind::kWorkspace);
  const MemoryKindScope outer(MemoryKind::kGradients);
  {
    const MemoryKindScope inner(MemoryKind::kBoundary);
    EXPECT_EQ(MemoryKindScope::Current(), MemoryKind::kBoundary);
    MemoryKind elsewhere = MemoryKind::kSlack;
    std::thread([&elsewhere] { elsewhere = MemoryKindScope::Current(); }).join();
    EXPECT_EQ(elsewhere, MemoryKind::kWorkspace);
  }
  EXPECT_EQ(MemoryKindScope::Current(), MemoryKind::kGradients);
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

// Two of them, as two processes have them that map the same memory.
TEST(MemoryLedger, SharesItsBooks) {
  std::vector<std::byte> memory(static_cast<size_t>(MemoryLedger::SharedBytes().value));
  MemoryLedger one(Bytes(100), absl::MakeSpan(memory));
  MemoryLedger other(Bytes(100), absl::MakeSpan(memory));
  ASSERT_TRUE(one.Take(Bytes(60), MemoryKind::kActivations));
  EXPECT_EQ(other.used(), Bytes(60));
  EXPECT_EQ(other.UsedByKind()[MemoryKind::kActivations], Bytes(60));
  EXPECT_FALSE(other.Take(Bytes(41)));
  ASSERT_TRUE(other.Take(Bytes(40)));
  one.Give(Bytes(60), MemoryKind::kActivations);
  EXPECT_EQ(other.used(), Bytes(40));
  EXPECT_EQ(one.peak(), Bytes(100));
  other.ResetPeak();
  EXPECT_EQ(one.peak(), Bytes(40));
}

// Threads take 7 bytes a time from two ledgers of 700: 100 times in all, whoever they are.
TEST(MemoryLedger, SharedBooksNeverExceedTheCapacity) {
  std::vector<std::byte> memory(static_cast<size_t>(MemoryLedger::SharedBytes().value));
  MemoryLedger ledgers[] = {MemoryLedger(Bytes(700), absl::MakeSpan(memory)),
                            MemoryLedger(Bytes(700), absl::MakeSpan(memory))};
  std::vector<int> taken(4);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < taken.size(); ++thread) {
    threads.emplace_back([&, thread] {
      while (ledgers[thread % 2].Take(Bytes(7))) ++taken[thread];
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (ledgers[0].Take(Bytes(7))) ++taken[0];
  EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0), 100);
  EXPECT_EQ(ledgers[1].used(), Bytes(700));
  EXPECT_EQ(ledgers[1].peak(), Bytes(700));
}

}  // namespace
}  // namespace siphon
