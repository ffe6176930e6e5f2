#include "planner/mapping/timed_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace siphon {
namespace {

constexpr int64_t kAtOnce = std::numeric_limits<int64_t>::max();
constexpr int64_t kBytePerNano = 1'000'000'000;

Nanos LeastTime(TimedFlow& flow) { return flow.LeastTime(flow.MostFlow(), Nanos(0)); }

// 100 bytes over two arcs: 10 bytes at most through one, the rest at 2 bytes a nanosecond.
TEST(TimedFlow, TakesTheTimeOfTheArcThatIsLeftByHand) {
  TimedFlow flow(3, Bytes(1));
  const int all = flow.AddArc(TimedFlow::kSource, 2, 100, kAtOnce);
  const int narrow = flow.AddArc(2, TimedFlow::kSink, 10, kBytePerNano);
  const int wide = flow.AddArc(2, TimedFlow::kSink, 100, 2 * kBytePerNano);
  EXPECT_EQ(flow.MostFlow(), 100);
  EXPECT_EQ(LeastTime(flow), Nanos(45));
  EXPECT_EQ(flow.Flow(all), 100);
  EXPECT_EQ(flow.Flow(narrow), 10);
  EXPECT_EQ(flow.Flow(wide), 90);
  EXPECT_EQ(flow.LeastTime(20, Nanos(0)), Nanos(7));  // 7 and 14; 6 and 12 are not enough
  EXPECT_EQ(flow.LeastTime(20, Nanos(30)), Nanos(30));
}

TEST(TimedFlow, CarriesWholeGranulesOnly) {
  TimedFlow flow(2, Bytes(64));
  flow.AddArc(TimedFlow::kSource, TimedFlow::kSink, 3, kBytePerNano);
  EXPECT_EQ(flow.Capacity(0, Nanos(127)), 1);
  EXPECT_EQ(flow.Capacity(0, Nanos(128)), 2);
  EXPECT_EQ(flow.Capacity(0, Nanos(1000)), 3);
  EXPECT_EQ(LeastTime(flow), Nanos(192));
}

TEST(TimedFlow, WaitsForGates) {
  TimedFlow flow(2, Bytes(1));
  flow.AddArc(TimedFlow::kSource, TimedFlow::kSink, 10, kBytePerNano);
  flow.AddGate(TimedFlow::kSource, TimedFlow::kSink, 5, Nanos(8));
  EXPECT_EQ(flow.LeastTime(15, Nanos(0)), Nanos(10));
  EXPECT_EQ(flow.LeastTime(8, Nanos(0)), Nanos(8));
  EXPECT_EQ(flow.LeastTime(13, Nanos(0)), Nanos(8));
  flow.FixArc(0, Nanos(4));
  EXPECT_EQ(flow.MostFlow(), 9);
  EXPECT_EQ(LeastTime(flow), Nanos(8));
}

TEST(TimedFlow, NeedsNoTimeForNothing) {
  TimedFlow flow(3, Bytes(1));
  flow.AddArc(TimedFlow::kSource, 2, 10, kBytePerNano);
  EXPECT_EQ(flow.MostFlow(), 0);
  EXPECT_EQ(LeastTime(flow), Nanos(0));
}

TEST(TimedFlow, EndsForThePetabyteAtOneByteASecond) {
  TimedFlow flow(2, Bytes(1));
  flow.AddArc(TimedFlow::kSource, TimedFlow::kSink, int64_t{1} << 50, 1);
  EXPECT_EQ(LeastTime(flow), TimedFlow::kLongest);
}

// What the nanosecond before cannot carry either, for networks of any shape.
TEST(TimedFlow, FindsTheFirstNanosecondThatIsEnough) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int nodes = 3 + static_cast<int>(random() % 6);
    const Bytes granule(1 + random() % 50);
    TimedFlow flow(nodes, granule);
    for (int from = 0; from < nodes; ++from) {
      for (int to = 1; to < nodes; ++to) {
        if (from == to || from == TimedFlow::kSink || random() % 3 == 0) continue;
        const auto limit = static_cast<int64_t>(random() % 1000);
        if (random() % 5 == 0) {
          flow.AddGate(from, to, limit, Nanos(random() % 1000));
        } else {
          flow.AddArc(from, to, limit, 1 + static_cast<int64_t>(random()));
        }
      }
    }
    const int64_t most = flow.MostFlow();
    const Nanos time = flow.LeastTime(most, Nanos(0));
    if (time == Nanos(0)) continue;
    EXPECT_TRUE(flow.SourceSideAt(time)[TimedFlow::kSource]);
    EXPECT_EQ(flow.LeastTime(most, time), time) << "round " << round;
    // A search by halves for the same time.
    Nanos low(0);
    Nanos high(time.value * 2);
    while (high.value - low.value > 1) {
      const Nanos middle((low.value + high.value) / 2);
      (flow.LeastTime(most, middle) == middle ? high : low) = middle;
    }
    EXPECT_EQ(high, time) << "round " << round;
  }
}

}  // namespace
}  // namespace siphon
