#include "swap/device/copy_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace siphon {
namespace {

constexpr Bytes kChunk(1000);

ChunkTimes Times(std::vector<int64_t> times) {
  ChunkTimes nanos;
  for (const int64_t time : times) nanos.emplace_back(time);
  return nanos;
}

TEST(RateOf, IsBytesASecond) {
  EXPECT_EQ(RateOf({Bytes(24), Nanos(1)}), BytesPerSecond(24'000'000'000));
  EXPECT_EQ(RateOf({Bytes(0), Nanos(100)}), BytesPerSecond(0));
  EXPECT_EQ(RateOf({}), BytesPerSecond(0));
}

TEST(FiguresOf, OfOnePathAreAllThatItMoved) {
  const std::vector<CopyFigure> figures = FiguresOf({Times({10, 20, 30, 40})}, kChunk);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].bytes, Bytes(4000));
  EXPECT_EQ(figures[0].time, Nanos(40));
}

// The second path is half as fast: when the first one is through, it has moved half.
TEST(FiguresOf, EndWithTheFirstPathThatIsThrough) {
  const std::vector<CopyFigure> figures =
      FiguresOf({Times({10, 20, 30, 40}), Times({20, 40, 50, 60})}, kChunk);
  EXPECT_EQ(figures[0].bytes, Bytes(4000));
  EXPECT_EQ(figures[1].bytes, Bytes(2000));
  EXPECT_EQ(figures[1].time, Nanos(40));
}

TEST(FiguresOf, CountAChunkThatIsUnderWayByItsShare) {
  const std::vector<CopyFigure> figures =
      FiguresOf({Times({10, 20, 30}), Times({24, 48, 72})}, kChunk);
  EXPECT_EQ(figures[1].bytes, Bytes(1250));  // one chunk in 24, then 6 of 24
}

// One engine that serves one stream after the other: together they are as fast as the first alone.
TEST(FiguresOf, GiveNothingToAPathThatWaits) {
  const std::vector<CopyFigure> figures =
      FiguresOf({Times({10, 20, 30}), Times({40, 50, 60})}, kChunk);
  EXPECT_EQ(figures[0].bytes, Bytes(3000));
  EXPECT_EQ(figures[1].bytes, Bytes(0));
}

TEST(MedianFigures, AreThoseOfEachPathAlone) {
  const auto rounds = [](std::vector<int64_t> first, std::vector<int64_t> second) {
    std::vector<std::vector<CopyFigure>> made;
    for (size_t round = 0; round < first.size(); ++round) {
      made.push_back({{kChunk, Nanos(first[round])}, {kChunk, Nanos(second[round])}});
    }
    return made;
  };
  const std::vector<CopyFigure> medians = MedianFigures(rounds({90, 10, 50}, {7, 8, 900}));
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_EQ(medians[0].time, Nanos(50));
  EXPECT_EQ(medians[1].time, Nanos(8));
}

}  // namespace
}  // namespace siphon
