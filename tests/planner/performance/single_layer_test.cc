#include "planner/performance/single_layer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace siphon {
namespace {

TEST(SingleLayer, FastSwapInFillsNearMemoryByHand) {
  // 2 buffers processed and 5 swapped in a step, 12 fit: 2, 5, 8, then 6 left and room for 4, and
  // from there on what was freed comes in.
  const SingleLayer layer{.processed_per_step = 2,
                          .swapped_in_per_step = 5,
                          .latency_steps = 3,
                          .capacity = 12,
                          .available = 2};
  const auto available = AvailableBuffers(layer, 6);
  ASSERT_TRUE(available.ok()) << available.status();
  EXPECT_EQ(*available, (std::vector<int64_t>{2, 5, 8, 10, 10, 10, 10}));
  EXPECT_EQ(FullConcurrency(layer), 6);
  EXPECT_DOUBLE_EQ(Utilization(layer, 2), 2.0 / 6.0);
  EXPECT_DOUBLE_EQ(Utilization(layer, 10), 1.0);
}

TEST(SingleLayer, SlowSwapInSetsThePace) {
  const SingleLayer layer{
      .processed_per_step = 5, .swapped_in_per_step = 2, .capacity = 12, .available = 12};
  const auto available = AvailableBuffers(layer, 5);
  ASSERT_TRUE(available.ok()) << available.status();
  // 7 left of 12 with no room for more; 4, then 2 for ever ("always Swap_in").
  EXPECT_EQ(*available, (std::vector<int64_t>{12, 7, 4, 2, 2, 2}));
}

TEST(SingleLayer, NeverHoldsMoreThanTheCapacity) {
  for (int64_t processed = 1; processed <= 6; ++processed) {
    for (int64_t swapped = 1; swapped <= 6; ++swapped) {
      for (int64_t capacity = 1; capacity <= 14; ++capacity) {
        for (int64_t first = 0; first <= capacity; ++first) {
          const SingleLayer layer{processed, swapped, 1, capacity, first};
          const auto available = AvailableBuffers(layer, 20);
          ASSERT_TRUE(available.ok());
          for (const int64_t count : *available) {
            ASSERT_GE(count, 0);
            ASSERT_LE(count, capacity);
          }
        }
      }
    }
  }
}

TEST(SingleLayer, TheClosedFormEqualsTheRecurrence) {
  int compared = 0;
  for (int64_t processed = 1; processed <= 6; ++processed) {
    for (int64_t swapped = 1; swapped <= 6; ++swapped) {
      for (int64_t capacity = processed + swapped; capacity <= 20; ++capacity) {
        for (int64_t first = processed; first <= capacity; ++first) {
          const SingleLayer layer{processed, swapped, 1, capacity, first};
          const auto available = AvailableBuffers(layer, 25);
          ASSERT_TRUE(available.ok());
          for (int64_t step = 0; step <= 25; ++step) {
            ASSERT_EQ(AvailableAfter(layer, step), (*available)[step])
                << processed << " processed, " << swapped << " swapped in, capacity " << capacity
                << ", first " << first << ", step " << step;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10'000);
}

TEST(SingleLayer, RefusesWhatIsNotALayer) {
  EXPECT_EQ(AvailableBuffers({.processed_per_step = 0}, 1).status().message(),
            "buffers processed per step: 0 must be positive");
  EXPECT_EQ(AvailableBuffers({.capacity = 3, .available = 4}, 1).status().message(),
            "available at first: 4 must be between 0 and the capacity of 3 buffers");
}

}  // namespace
}  // namespace siphon
