#include "planner/cheapest_drops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace siphon {
namespace {

using testing::ElementsAre;

// 1,000 ns to compute everything again; saved tensors by their bytes and parts made.
LayerProfile Layer(const std::vector<std::pair<int, int>>& saved) {
  LayerProfile layer{.forward = Nanos(1000)};
  for (const auto& [bytes, made_ppm] : saved) {
    layer.saved.push_back({.name = "tensor", .bytes = Bytes(bytes), .made_ppm = made_ppm});
  }
  return layer;
}

TEST(FirstTensorsOf, AreThoseMadeBeforeTheNextOne) {
  EXPECT_THAT(FirstTensorsOf(Layer({{1, 0}, {1, 0}, {1, 400'000}, {1, 400'000}, {1, 1'000'000}})),
              ElementsAre(2, 4));
  EXPECT_TRUE(FirstTensorsOf(Layer({{1, 0}, {1, 0}})).empty()) << "nothing is known";
  EXPECT_TRUE(FirstTensorsOf(Layer({})).empty());
}

TEST(RecomputeTime, OfTheFirstTensorsEndsWithTheLastOfThem) {
  LayerProfile layer = Layer({{1, 0}, {1, 333'333}, {1, 1'000'000}});
  EXPECT_EQ(RecomputeTime(layer, 1), Nanos(1)) << "no time would be none at all";
  EXPECT_EQ(RecomputeTime(layer, 2), Nanos(334)) << "rounded up";
  EXPECT_EQ(RecomputeTime(layer, 3), Nanos(1000));
  layer.recompute = Nanos(300);
  EXPECT_EQ(RecomputeTime(layer, 2), Nanos(100));
}

// 100 bytes for 100 ns, 200 for 500, 300 for 600, 400 for 1,000: the second is no cheaper than the
// first and the third in turns.
TEST(CheapestDrops, LeavesOutWhatOthersInTurnsBeat) {
  const LayerProfile layer =
      Layer({{100, 100'000}, {100, 500'000}, {100, 600'000}, {100, 1'000'000}});
  EXPECT_THAT(CheapestDrops(layer, Bytes(400)),
              ElementsAre(DropStep{1, Bytes(100), Nanos(100)}, DropStep{3, Bytes(300), Nanos(600)},
                          DropStep{0, Bytes(400), Nanos(1000)}));
}

TEST(PossibleDrops, AreEveryNumberOfFirstTensors) {
  const LayerProfile layer =
      Layer({{100, 100'000}, {100, 500'000}, {100, 500'000}, {100, 1'000'000}});
  EXPECT_THAT(PossibleDrops(layer, Bytes(400)),
              ElementsAre(DropStep{1, Bytes(100), Nanos(100)}, DropStep{3, Bytes(300), Nanos(500)},
                          DropStep{0, Bytes(400), Nanos(1000)}));
}

TEST(CheapestDrops, EndsWithAllThatIsTheLayersOwn) {
  const LayerProfile layer = Layer({{100, 500'000}, {100, 1'000'000}});
  EXPECT_THAT(CheapestDrops(layer, Bytes(150)), ElementsAre(DropStep{1, Bytes(100), Nanos(500)},
                                                            DropStep{0, Bytes(150), Nanos(1000)}));
  EXPECT_THAT(CheapestDrops(layer, Bytes(100)), ElementsAre(DropStep{0, Bytes(100), Nanos(1000)}));
  EXPECT_TRUE(CheapestDrops(layer, Bytes(0)).empty());
}

// No mix of two choices frees as many bytes as a step in less time.
TEST(CheapestDrops, AreBelowEveryMix) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<int, int>> saved;
    int made = 0;
    for (int tensors = 1 + static_cast<int>(random() % 8); tensors > 0; --tensors) {
      saved.emplace_back(1 + static_cast<int>(random() % 100), made);
      if (random() % 3 > 0) made += static_cast<int>(random() % 100'000);
    }
    const LayerProfile layer = Layer(saved);
    const std::vector<DropStep> steps = CheapestDrops(layer, SavedBytes(layer));
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().first_tensors, 0);
    // The time of the cheapest drops for so many bytes, in turns.
    const auto least = [&](double bytes) {
      DropStep before;
      for (const DropStep& step : steps) {
        if (bytes <= static_cast<double>(step.bytes.value)) {
          const double part = (bytes - static_cast<double>(before.bytes.value)) /
                              static_cast<double>((step.bytes - before.bytes).value);
          return static_cast<double>(before.recompute.value) +
                 part * static_cast<double>((step.recompute - before.recompute).value);
        }
        before = step;
      }
      return static_cast<double>(steps.back().recompute.value);
    };
    Bytes first;
    int counted = 0;
    for (const int count : FirstTensorsOf(layer)) {
      for (; counted < count; ++counted) first += layer.saved[counted].bytes;
      EXPECT_LE(least(static_cast<double>(first.value)),
                static_cast<double>(RecomputeTime(layer, count).value) + 1e-6);
    }
  }
}

}  // namespace
}  // namespace siphon
