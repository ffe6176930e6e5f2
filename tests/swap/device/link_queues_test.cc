#include "swap/device/link_queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/dice.h"

namespace siphon {
namespace {

constexpr BytesPerSecond kOneBytePerNano(1'000'000'000);
constexpr BytesPerSecond kUnlimited(0);

class LinkQueuesByHand : public testing::Test {
 protected:
  std::vector<CopyPart> Parts(const std::vector<size_t>& sizes, int link) {
    std::vector<CopyPart> parts;
    for (const size_t size : sizes) {
      parts.push_back({absl::MakeConstSpan(from_).subspan(0, size),
                       absl::MakeSpan(to_).subspan(0, size), CopyLinkId(link)});
    }
    return parts;
  }

  // All turns, each taken as soon as its time has come: "time link:bytes", or "time link.copy"
  // where that share is through.
  static std::string Turns(LinkQueues& queues, Nanos now = Nanos(0)) {
    std::string text;
    while (const std::optional<Nanos> next = queues.NextTime()) {
      now = std::max(now, *next);
      const std::optional<LinkTurn> turn = queues.Take(now);
      if (!turn.has_value()) return text + " none";
      int64_t bytes = 0;
      for (const CopyPart& part : turn->parts) bytes += static_cast<int64_t>(part.from.size());
      absl::StrAppend(
          &text, text.empty() ? "" : " | ", turn->time.value, " ", turn->link.value,
          turn->parts.empty() ? absl::StrCat(".", turn->copy.value) : absl::StrCat(":", bytes));
    }
    return text;
  }

  std::vector<std::byte> from_ = std::vector<std::byte>(1000);
  std::vector<std::byte> to_ = std::vector<std::byte>(1000);
};

TEST_F(LinkQueuesByHand, MovesAChunkWhenTheOneBeforeHasPassed) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({25}, 0), Nanos(100));
  // 5 ns of latency, then chunks of 10, 10 and 5 bytes.
  EXPECT_EQ(Turns(queues), "105 0:10 | 115 0:10 | 125 0:5 | 130 0.0");
  EXPECT_FALSE(queues.NextTime().has_value());
}

TEST_F(LinkQueuesByHand, TakesOneCopyAfterTheOtherWithTheLatencyOfEach) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}}, Bytes(100));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({20, 10}, 0), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(0), Parts({40}, 0), Nanos(0));
  // One latency for both tensors of the first.
  EXPECT_EQ(Turns(queues), "5 0:30 | 35 0.0 | 40 0:40 | 80 0.1");
  queues.Add(CopyEvent(2), CopyLinkId(0), Parts({1}, 0), Nanos(200));
  EXPECT_EQ(Turns(queues), "205 0:1 | 206 0.2");
}

TEST_F(LinkQueuesByHand, LetsAllLinksWorkAtTheSameTime) {
  LinkQueues queues({{kOneBytePerNano, {}}, {BytesPerSecond(2'000'000'000), {}}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({20}, 0), Nanos(0));
  queues.Add(CopyEvent(0), CopyLinkId(1), Parts({40}, 1), Nanos(0));
  EXPECT_EQ(Turns(queues),
            "0 0:10 | 0 1:10 | 5 1:10 | 10 0:10 | 10 1:10 | 15 1:10 | 20 0.0 | 20 1.0");
}

TEST_F(LinkQueuesByHand, LetsACopyOverAnotherLinkPassByABusyOne) {
  LinkQueues queues({{kOneBytePerNano, {}}, {kOneBytePerNano, {}}}, Bytes(50));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({100}, 0), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(1), Parts({10}, 1), Nanos(0));
  EXPECT_EQ(Turns(queues), "0 0:50 | 0 1:10 | 10 1.1 | 50 0:50 | 100 0.0");
}

TEST_F(LinkQueuesByHand, TakesUnlimitedLinksInTurn) {
  LinkQueues queues({{kUnlimited, {}}, {kUnlimited, {}}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({25}, 0), Nanos(7));
  queues.Add(CopyEvent(0), CopyLinkId(1), Parts({15}, 1), Nanos(7));
  EXPECT_EQ(Turns(queues), "7 0:10 | 7 1:10 | 7 0:10 | 7 1:5 | 7 1.0 | 7 0:5 | 7 0.0");
}

TEST_F(LinkQueuesByHand, CatchesUpWhenATurnComesLate) {
  LinkQueues queues({{kOneBytePerNano, {}}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({20}, 0), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(0), Parts({20}, 0), Nanos(0));
  // Everything could have moved by 40.
  EXPECT_EQ(Turns(queues, Nanos(33)), "0 0:10 | 10 0:10 | 20 0.0 | 20 0:10 | 30 0:10 | 40 0.1");
}

TEST_F(LinkQueuesByHand, FillsAChunkFromSeveralTensorsAndCutsThem) {
  LinkQueues queues({{kUnlimited, {}}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({4, 3, 9}, 0), Nanos(0));
  const std::optional<LinkTurn> first = queues.Take(Nanos(0));
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(first->parts.size(), 3u);  // 4 + 3 + 3
  EXPECT_EQ(first->parts[2].from.size(), 3u);
  const std::optional<LinkTurn> second = queues.Take(Nanos(0));
  ASSERT_TRUE(second.has_value());
  ASSERT_EQ(second->parts.size(), 1u);
  EXPECT_EQ(second->chunk, 1);
  EXPECT_EQ(second->parts[0].from.data() - from_.data(), 3);
  EXPECT_EQ(second->parts[0].to.data() - to_.data(), 3);
  EXPECT_EQ(second->parts[0].from.size(), 6u);
}

TEST_F(LinkQueuesByHand, GivesNothingBeforeItsTime) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}}, Bytes(10));
  EXPECT_FALSE(queues.Take(Nanos(1000)).has_value());
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({10}, 0), Nanos(0));
  EXPECT_FALSE(queues.Take(Nanos(4)).has_value());
  EXPECT_TRUE(queues.Take(Nanos(5)).has_value());
  EXPECT_FALSE(queues.Take(Nanos(14)).has_value());
  EXPECT_EQ(queues.NextTime(), Nanos(15));
}

TEST_F(LinkQueuesByHand, LeavesOutTheRestOfACopyThatIsCut) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}, {kOneBytePerNano, {}}}, Bytes(10));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({500}, 0), Nanos(0));
  queues.Add(CopyEvent(0), CopyLinkId(1), Parts({500}, 1), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(0), Parts({5}, 0), Nanos(0));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({500}, 0), Nanos(0));
  ASSERT_TRUE(queues.Take(Nanos(0)).has_value());
  queues.Cut(CopyEvent(0), Nanos(3));
  EXPECT_EQ(Turns(queues), "3 0.0 | 3 1.0 | 8 0:5 | 13 0.1 | 13 0.0");
}

// No copy is through before bytes / rate after it could begin, and all of it has moved by then.
TEST_F(LinkQueuesByHand, NeverIsFasterThanTheRateInRandomRuns) {
  Dice dice(11);
  for (int round = 0; round < 200; ++round) {
    const int links = dice.Roll(1, 4);
    std::vector<CopyLinkRate> rates;
    for (int link = 0; link < links; ++link) {
      rates.push_back({BytesPerSecond(dice.Roll(1, 9) * 333'333'333LL), Nanos(dice.Roll(0, 20))});
    }
    LinkQueues queues(rates, Bytes(dice.Roll(1, 64)));
    std::map<std::pair<int, int>, std::pair<int64_t, int64_t>> wanted;  // bytes, time on paper
    std::vector<double> free(links);
    int64_t now = 0;
    for (int copy = 0; copy < 6; ++copy) {
      now += dice.Roll(0, 100);
      for (int link = 0; link < links; ++link) {
        const size_t bytes = dice.Roll(1, 200);
        queues.Add(CopyEvent(copy), CopyLinkId(link), Parts({bytes, bytes}, link), Nanos(now));
        const double rate = static_cast<double>(rates[link].rate.value) / 1e9;
        free[link] = std::max<double>(free[link], static_cast<double>(now)) +
                     static_cast<double>(rates[link].latency.value) +
                     2 * static_cast<double>(bytes) / rate;
        wanted[{copy, link}] = {2 * bytes, static_cast<int64_t>(free[link])};
      }
    }
    std::map<std::pair<int, int>, int64_t> moved;
    now = 0;
    while (const std::optional<Nanos> next = queues.NextTime()) {
      now = std::max(now, next->value + dice.Roll(0, 30));  // comes late
      const std::optional<LinkTurn> turn = queues.Take(Nanos(now));
      ASSERT_TRUE(turn.has_value());
      EXPECT_LE(turn->time, Nanos(now));
      const std::pair share(turn->copy.value, turn->link.value);
      for (const CopyPart& part : turn->parts) moved[share] += part.from.size();
      if (!turn->parts.empty()) continue;
      EXPECT_EQ(moved[share], wanted[share].first);
      // Rounded up by less than 1 ns a copy.
      EXPECT_GE(turn->time.value, wanted[share].second);
      EXPECT_LE(turn->time.value, wanted[share].second + 7);
      wanted.erase(share);
    }
    EXPECT_TRUE(wanted.empty());
  }
}

TEST_F(LinkQueuesByHand, CountsWhatWentOverEachLinkAndHowLongItTook) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}, {kOneBytePerNano, {}}}, Bytes(100));
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({20, 10}, 0), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(0), Parts({40}, 0), Nanos(0));
  EXPECT_EQ(Turns(queues), "5 0:30 | 35 0.0 | 40 0:40 | 80 0.1");
  // The second waits for the first: 35 of their own, and 45.
  const CopyLinkUse none;
  EXPECT_EQ(queues.TakeUse(), (std::vector<CopyLinkUse>{{2, Bytes(70), Nanos(80)}, none}));
  // Seen through late: at 300 instead of 211.
  queues.Add(CopyEvent(2), CopyLinkId(0), Parts({6}, 0), Nanos(200));
  EXPECT_EQ(Turns(queues, Nanos(300)), "205 0:6 | 211 0.2");
  EXPECT_EQ(queues.TakeUse(), (std::vector<CopyLinkUse>{{1, Bytes(6), Nanos(100)}, none}));
  EXPECT_EQ(queues.TakeUse(), (std::vector<CopyLinkUse>{none, none}));
}

TEST_F(LinkQueuesByHand, IsSlowerOnceItIsSlowedDown) {
  LinkQueues queues({{kOneBytePerNano, Nanos(5)}, {kUnlimited, {}}}, Bytes(10));
  queues.SlowDown(CopyLinkId(0), 100);
  queues.SlowDown(CopyLinkId(1), 100);
  queues.Add(CopyEvent(0), CopyLinkId(0), Parts({15}, 0), Nanos(0));
  queues.Add(CopyEvent(1), CopyLinkId(1), Parts({15}, 1), Nanos(0));
  EXPECT_EQ(Turns(queues), "0 1:10 | 0 1:5 | 0 1.1 | 5 0:10 | 1005 0:5 | 1505 0.0");
}

}  // namespace
}  // namespace siphon
