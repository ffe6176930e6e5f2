#include "swap/device/shared_ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "swap/device/link_queues.h"

namespace siphon {
namespace {

constexpr BytesPerSecond kOneBytePerNano(1'000'000'000);
constexpr BytesPerSecond kHalf(500'000'000);

class WaysOf {
 public:
  explicit WaysOf(const std::vector<SharedWay>& ways)
      : memory_(static_cast<size_t>(SharedWays::BytesFor(ways.size()).value) / sizeof(int64_t)),
        ways_(ways, absl::MakeSpan(reinterpret_cast<std::byte*>(memory_.data()),
                                   memory_.size() * sizeof(int64_t))) {}
  int64_t Book(const std::vector<int>& over, int64_t bytes, int64_t begin) {
    std::vector<SharedWayId> ids;
    for (const int way : over) ids.emplace_back(way);
    return ways_.Book(ids, Bytes(bytes), Nanos(begin)).value;
  }
  const SharedWays& ways() const { return ways_; }

 private:
  std::vector<int64_t> memory_;
  SharedWays ways_;
};

TEST(SharedWays, AreTakenByOneBehindTheOther) {
  WaysOf ways({{kOneBytePerNano}, {BytesPerSecond(0)}, {kHalf}});
  EXPECT_EQ(ways.Book({0}, 100, 1000), 1100);
  EXPECT_EQ(ways.Book({0}, 50, 1000), 1150) << "behind the first";
  EXPECT_EQ(ways.Book({0}, 10, 2000), 2010);
  EXPECT_EQ(ways.Book({1}, 1'000'000, 5), 5) << "no limit";
  EXPECT_EQ(ways.Book({}, 1'000'000, 5), 5) << "nothing shared";
  EXPECT_EQ(ways.Book({0, 2}, 100, 3000), 3200) << "as slow as the slowest";
  EXPECT_EQ(ways.Book({0}, 10, 3000), 3110) << "the other one is free again before";
}

TEST(SharedWays, AreSlowerWhileBothDirectionsAreInUse) {
  WaysOf ways({{kOneBytePerNano, kHalf, 1}, {kOneBytePerNano, kHalf, 0}});
  EXPECT_EQ(ways.Book({0}, 100, 0), 100);
  EXPECT_EQ(ways.Book({1}, 100, 0), 200) << "the first is under way until 100";
  EXPECT_EQ(ways.Book({0}, 50, 100), 200) << "and now the second is";
  EXPECT_EQ(ways.Book({0}, 50, 300), 350) << "alone again";
}

TEST(SharedWays, LoseNoTimeWithManyThreads) {
  WaysOf ways({{kOneBytePerNano}});
  constexpr int kThreads = 4;
  constexpr int kBookings = 2000;
  std::vector<std::thread> threads;
  std::vector<int64_t> last(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int booking = 0; booking < kBookings; ++booking) {
        last[thread] = ways.Book({0}, 3, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*std::max_element(last.begin(), last.end()), int64_t{3} * kThreads * kBookings);
}

// Two workers over one uplink, on paper: what they want is through when it is at the uplink's rate,
// and each has its half of it while both want it.
TEST(SharedWays, GiveEachOfTwoQueuesItsHalf) {
  WaysOf ways({{kOneBytePerNano}});
  const BookLink book = [&](CopyLinkId, Bytes bytes, Nanos begin) {
    return ways.ways().Book({SharedWayId(0)}, bytes, begin);
  };
  std::vector<std::byte> from(100'000'000 / 1000), to(from.size());
  // 100,000 bytes each at a byte a nanosecond, in chunks of 1,000; the second has 40,000 only.
  LinkQueues first({{kOneBytePerNano, {}}}, Bytes(1000), book);
  LinkQueues second({{kOneBytePerNano, {}}}, Bytes(1000), book);
  const auto add = [&](LinkQueues& queues, size_t bytes) {
    queues.Add(CopyEvent(0), CopyLinkId(0),
               {{absl::MakeConstSpan(from).subspan(0, bytes), absl::MakeSpan(to).subspan(0, bytes),
                 CopyLinkId(0)}},
               Nanos(0));
  };
  add(first, 100'000);
  add(second, 40'000);
  Nanos ends[2];
  while (first.NextTime().has_value() || second.NextTime().has_value()) {
    const bool turn_of_first =
        first.NextTime().has_value() &&
        (!second.NextTime().has_value() || *first.NextTime() <= *second.NextTime());
    LinkQueues& queues = turn_of_first ? first : second;
    const Nanos now = *queues.NextTime();
    ASSERT_TRUE(queues.Take(now).has_value());
    ends[turn_of_first ? 0 : 1] = now;
  }
  EXPECT_EQ(ends[0], Nanos(140'000)) << "all bytes at the uplink's rate";
  EXPECT_NEAR(static_cast<double>(ends[1].value), 80'000, 1'000) << "40,000 at half of it";
}

TEST(LinkQueues, BookChunksOfAFewMillisecondsAtMost) {
  std::vector<int64_t> booked;
  const BookLink book = [&](CopyLinkId, Bytes bytes, Nanos begin) {
    booked.push_back(bytes.value);
    return begin;
  };
  // 2 MB/s: 10,000 bytes in 5 ms.
  LinkQueues queues({{BytesPerSecond(2'000'000), {}}}, Bytes(8 << 20), book);
  std::vector<std::byte> from(25'000), to(from.size());
  queues.Add(CopyEvent(0), CopyLinkId(0),
             {{absl::MakeConstSpan(from), absl::MakeSpan(to), CopyLinkId(0)}}, Nanos(0));
  while (queues.NextTime().has_value()) ASSERT_TRUE(queues.Take(*queues.NextTime()).has_value());
  EXPECT_EQ(booked, (std::vector<int64_t>{10'000, 10'000, 5'000}));
  EXPECT_EQ(queues.TakeUse()[0].time, Nanos(12'500'000));
}

}  // namespace
}  // namespace siphon
