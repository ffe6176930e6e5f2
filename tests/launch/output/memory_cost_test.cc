#include "launch/output/memory_cost.h"

#include "gtest/gtest.h"

namespace siphon {
namespace {

constexpr Bytes kMebibyte(1 << 20);

TEST(MemoryCost, IsOfAllStepsAndWorkers) {
  MemoryCost cost;
  for (const int64_t mebibytes : {1, 3}) {
    StepMetrics step;
    step.workers = {{.busy = Nanos(600),
                     .wait = Nanos(400),
                     .swap_wait = Nanos(20),
                     .recompute = Nanos(100),
                     .swapped_d2d = Bytes(mebibytes * kMebibyte.value)},
                    {.busy = Nanos(1000),
                     .swapped_d2d = kMebibyte,
                     .swapped_host = Bytes(2 * mebibytes * kMebibyte.value)}};
    Add(step, cost);
  }
  EXPECT_EQ(ParkedText(cost),
            "3.00 MiB a step to other devices, 4.00 MiB a step to the host; waits for copies took "
            "1.0 % of the workers' time");
  EXPECT_EQ(RecomputedText(cost), "5.0 % of the workers' time");
}

TEST(MemoryCost, OfWhatKeepsEverythingIsNotSpokenOf) {
  MemoryCost cost;
  EXPECT_EQ(ParkedText(cost), "");
  Add({.workers = {{.busy = Nanos(600)}}}, cost);
  EXPECT_EQ(ParkedText(cost), "");
  EXPECT_EQ(RecomputedText(cost), "");
}

}  // namespace
}  // namespace siphon
