#include "planner/performance/out_of_core_equations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "planner/performance/simulate_out_of_core.h"
#include "tests/planner/performance/out_of_core_testing.h"

namespace siphon {
namespace {

TEST(OutOfCoreEquations, SwapsAtTheRateOfTheSlowestPart) {
  const BytesPerSecond far(60'000'000'000), near(900'000'000'000), link(12'000'000'000);
  EXPECT_EQ(SwapRate(far, near, link), link);
  EXPECT_EQ(SwapRate(BytesPerSecond(2'000'000'000), near, link), BytesPerSecond(2'000'000'000));
  EXPECT_EQ(SwapRate(far, BytesPerSecond(1), link), BytesPerSecond(1));
}

TEST(OutOfCoreEquations, RoundsACopyUpToAWholeNanosecond) {
  EXPECT_EQ(CopyTime(Bytes(3), BytesPerSecond(2'000'000'000), Nanos(10)), Nanos(12));
  EXPECT_EQ(CopyTime(Bytes(4), BytesPerSecond(2'000'000'000), Nanos(10)), Nanos(12));
  EXPECT_EQ(CopyTime(Bytes(0), BytesPerSecond(1), Nanos(10)), Nanos(0));
  // An exbibyte at 1 GB/s: the product of bytes and nanoseconds does not fit into 64 bits.
  EXPECT_EQ(CopyTime(Bytes(int64_t{1} << 60), BytesPerSecond(1'000'000'000), Nanos(0)),
            Nanos(int64_t{1} << 60));
}

TEST(OutOfCoreEquations, ASectionTakesTheLongerOfComputationAndCopy) {
  EXPECT_EQ(SectionTime(Nanos(6), Nanos(8)), Nanos(8));
  EXPECT_DOUBLE_EQ(SectionUtilization(Nanos(6), Nanos(8)), 0.75);
  EXPECT_DOUBLE_EQ(SectionUtilization(Nanos(8), Nanos(6)), 1.0);
  EXPECT_DOUBLE_EQ(SectionUtilization(Nanos(0), Nanos(0)), 1.0);
}

TEST(OutOfCoreEquations, ProcessingCatchesUpWithSwapInByHand) {
  // Six layers, room for three. Backward 4, copies 6: copies end at 10, 16, 22 after the backward
  // began, for layers wanted at 12, 16, 20. The third comes 2 too late.
  const OutOfCoreProblem problem = NanosecondProblem(6, 4, 4, 6, 18);
  const EqualLayers equal = *EqualLayersOf(problem);
  EXPECT_EQ(CapacityBasedCatchUp(equal), Nanos(20));
  EXPECT_EQ(Simulated("capacity_based", problem).catch_up, Nanos(20));
  EXPECT_DOUBLE_EQ(CapacityBasedUtilization(equal, Nanos(19)), 1.0);
  EXPECT_DOUBLE_EQ(CapacityBasedUtilization(equal, Nanos(20)), 4.0 / 6.0);
}

TEST(OutOfCoreEquations, CatchUpEqualsTheSimulatedFirstWait) {
  int waited = 0;
  for (int layers = 1; layers <= 12; ++layers) {
    for (int64_t backward = 0; backward <= 9; ++backward) {
      for (int64_t saved = 0; saved <= 9; ++saved) {
        for (int64_t buffers = 1; buffers <= 6; ++buffers) {
          const OutOfCoreProblem problem =
              NanosecondProblem(layers, 3, backward, saved, buffers * saved);
          const std::optional<Nanos> expected = Simulated("capacity_based", problem).catch_up;
          ASSERT_EQ(CapacityBasedCatchUp(*EqualLayersOf(problem)), expected)
              << layers << " layers, backward " << backward << ", copy " << saved << ", " << buffers
              << " buffers";
          waited += expected ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(waited, 1000);
}

TEST(OutOfCoreEquations, CatchUpOfManySmallLayersIsCapacityOverTheDifferenceOfRates) {
  // 100,000 layers of 100 bytes, processed at 10 bytes and brought in at 5 bytes a nanosecond;
  // 1,000,000 bytes fit: 1,000,000 / (10 - 5) = 200,000 ns.
  OutOfCoreProblem problem = NanosecondProblem(100'000, 1, 10, 100, 1'000'000);
  problem.path.in = BytesPerSecond(5'000'000'000);
  const std::optional<Nanos> catch_up = CapacityBasedCatchUp(*EqualLayersOf(problem));
  ASSERT_TRUE(catch_up);
  EXPECT_NEAR(static_cast<double>(catch_up->value), 200'000, 20);
}

}  // namespace
}  // namespace siphon
