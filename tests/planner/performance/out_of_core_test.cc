// The strategies, simulated and as closed forms.

#include "planner/performance/out_of_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/performance/out_of_core_equations.h"
#include "planner/performance/simulate_out_of_core.h"
#include "tests/planner/performance/out_of_core_testing.h"

namespace siphon {
namespace {

// Three layers, F 4, B 6, copies 5 each way, room for two buffers.
OutOfCoreProblem ThreeLayers() { return NanosecondProblem(3, 4, 6, 5, 10); }

TEST(Vdnn, SynchronisesAtTheEndOfEachLayerAndTurnsSlowly) {
  const OutOfCoreStep step = Simulated("vdnn", ThreeLayers());
  EXPECT_EQ(ToString(step),
            "F1 [0, 4) compute\n"
            "F2 [4, 8) compute\n"
            "out 1 [4, 9) out\n"
            "F3 [9, 13) compute\n"  // waits for out 1
            "out 2 [9, 14) out\n"
            "out 3 [14, 19) out\n"
            "in 3 [19, 24) in\n"  // nothing computes from 13 to 24
            "B3 [24, 30) compute\n"
            "in 2 [24, 29) in\n"
            "B2 [30, 36) compute\n"
            "in 1 [30, 35) in\n"
            "B1 [36, 42) compute\n");
  EXPECT_EQ(step.step_time, Nanos(42));
  EXPECT_EQ(step.stall, Nanos(42 - 30));
  EXPECT_EQ(step.forward, Nanos(13));
  EXPECT_EQ(step.moved_out, Bytes(15));
  EXPECT_EQ(step.moved_in, Bytes(15));
  EXPECT_EQ(step.swapped_layers, 3);
  EXPECT_EQ(step.peak, Bytes(10));
}

TEST(VdnnPlusPlus, StartsAForwardAsSoonAsThereIsRoom) {
  OutOfCoreProblem problem = ThreeLayers();
  problem.capacity = Bytes(15);
  EXPECT_EQ(ToString(Simulated("vdnn_plus_plus", problem)),
            "F1 [0, 4) compute\n"
            "F2 [4, 8) compute\n"
            "out 1 [4, 9) out\n"
            "F3 [8, 12) compute\n"  // no synchronisation
            "out 2 [9, 14) out\n"
            "out 3 [14, 19) out\n"
            "in 3 [19, 24) in\n"
            "B3 [24, 30) compute\n"
            "in 2 [24, 29) in\n"
            "in 1 [29, 34) in\n"  // there is room, so it need not wait for B3
            "B2 [30, 36) compute\n"
            "B1 [36, 42) compute\n");
}

TEST(CapacityBased, MovesOnlyWhatDoesNotFit) {
  const OutOfCoreStep step = Simulated("capacity_based", ThreeLayers());
  EXPECT_EQ(ToString(step),
            "F1 [0, 4) compute\n"
            "F2 [4, 8) compute\n"
            "out 1 [4, 9) out\n"
            "F3 [9, 13) compute\n"  // waits for the room that layer 1 leaves
            "B3 [13, 19) compute\n"
            "B2 [19, 25) compute\n"
            "in 1 [19, 24) in\n"
            "B1 [25, 31) compute\n");
  EXPECT_EQ(step.stall, Nanos(1));
  EXPECT_EQ(step.swapped_layers, 1);
  EXPECT_EQ(step.catch_up, std::nullopt);
}

TEST(CapacityBased, LeavesAJobThatFitsAlone) {
  const OutOfCoreProblem problem = NanosecondProblem(3, 4, 6, 5, 15);
  const OutOfCoreStep step = Simulated("capacity_based", problem);
  EXPECT_EQ(step.step_time, Simulated("in_memory", problem).step_time);
  EXPECT_EQ(step.moved_out, Bytes(0));
  EXPECT_GT(Simulated("vdnn", problem).step_time, step.step_time);
}

TEST(UnifiedMemory, WaitsForEachPageAtHalfTheRate) {
  // 15 bytes in 9: 6 leave while layers 2 and 3 run forward, and fault in layers 2 and 1.
  OutOfCoreProblem problem = ThreeLayers();
  problem.capacity = Bytes(9);
  const OutOfCoreStep step = Simulated("unified_memory", problem);
  EXPECT_EQ(ToString(step),
            "F1 [0, 4) compute\n"
            "evict 2 [4, 6) compute\n"
            "F2 [6, 10) compute\n"
            "evict 3 [10, 20) compute\n"
            "F3 [20, 24) compute\n"
            "B3 [24, 30) compute\n"
            "fault 2 [30, 32) compute\n"
            "B2 [32, 38) compute\n"
            "fault 1 [38, 48) compute\n"
            "B1 [48, 54) compute\n");
  EXPECT_EQ(step.catch_up, Nanos(6));
  EXPECT_EQ(step.moved_in, Bytes(6));
  EXPECT_EQ(step.peak, Bytes(9));
}

TEST(UnifiedMemory, PrefetchBringsPagesBackBesideTheComputation) {
  OutOfCoreProblem problem = ThreeLayers();
  problem.capacity = Bytes(9);
  EXPECT_EQ(ToString(Simulated("unified_memory_prefetch", problem)),
            "F1 [0, 4) compute\n"
            "evict 2 [4, 6) compute\n"
            "F2 [6, 10) compute\n"
            "evict 3 [10, 20) compute\n"
            "F3 [20, 24) compute\n"
            "B3 [24, 30) compute\n"
            "in 2 [30, 32) in\n"  // 1 byte at 0.9 bytes a nanosecond, rounded up
            "B2 [32, 38) compute\n"
            "in 1 [38, 44) in\n"
            "B1 [44, 50) compute\n");
}

TEST(OutOfCore, ASingleLayerTurnsAround) {
  const OutOfCoreProblem problem = NanosecondProblem(1, 4, 6, 5, 5);
  EXPECT_EQ(Simulated("vdnn", problem).step_time, Nanos(20));
  EXPECT_EQ(Simulated("capacity_based", problem).step_time, Nanos(10));
}

TEST(OutOfCore, StrategiesThatKeepWholeBuffersNameTheLayerThatDoesNotFit) {
  OutOfCoreProblem problem = NanosecondProblem(3, 4, 6, 5, 9);
  problem.layers[1].saved = Bytes(11);
  const auto error = [&](absl::string_view name) {
    const auto step = SimulateOutOfCore(*FindOutOfCoreStrategy(name), problem);
    EXPECT_EQ(step.status().code(), absl::StatusCode::kResourceExhausted);
    return std::string(step.status().message());
  };
  EXPECT_EQ(error("capacity_based"),
            "layer 2 saves 11 B, near memory has 9 B for saved tensors; a smaller batch would fit");
  problem.layers[1].saved = Bytes(5);
  EXPECT_EQ(error("vdnn"),
            "layers 1 and 2 save 10 B, near memory has 9 B for saved tensors; vDNN-like swapping "
            "holds neighbours at once, a smaller batch would fit");
  EXPECT_EQ(error("in_memory"), "all layers save 15 B, near memory has 9 B for saved tensors");
  EXPECT_EQ(FindOutOfCoreStrategy("vddn").status().code(), absl::StatusCode::kNotFound);
}

TEST(OutOfCore, TheClosedFormIsForEqualLayersAndSaysSo) {
  OutOfCoreProblem problem = ThreeLayers();
  problem.layers[2].forward = Nanos(5);
  const auto time = FindOutOfCoreStrategy("capacity_based")->closed_form(problem);
  EXPECT_EQ(time.status().message(),
            "layer 3 differs from layer 1; the closed form is for equal layers, simulate these");
}

// Uniform in [low, high], the same on every machine.
class Numbers {
 public:
  int64_t Between(int64_t low, int64_t high) {
    const uint64_t bits = HashOf(draws_++);
    return low + static_cast<int64_t>(bits % static_cast<uint64_t>(high - low + 1));
  }

 private:
  static uint64_t HashOf(uint64_t x) {  // splitmix64's finalizer
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t draws_ = 0;
};

OutOfCoreProblem RandomEqualLayers(Numbers& numbers) {
  const auto saved = numbers.Between(0, 40);
  OutOfCoreProblem problem = NanosecondProblem(
      static_cast<int>(numbers.Between(1, 12)), numbers.Between(0, 30), numbers.Between(0, 30),
      saved, numbers.Between(1, 13 * std::max<int64_t>(saved, 1)));
  problem.path.out = BytesPerSecond(numbers.Between(200'000'000, 5'000'000'000));
  problem.path.in = BytesPerSecond(numbers.Between(200'000'000, 5'000'000'000));
  problem.path.latency = Nanos(numbers.Between(0, 3));
  return problem;
}

TEST(OutOfCore, EveryClosedFormEqualsItsSimulationToTheNanosecond) {
  Numbers numbers;
  std::vector<int> compared(OutOfCoreStrategies().size());
  for (int trial = 0; trial < 4000; ++trial) {
    const OutOfCoreProblem problem = RandomEqualLayers(numbers);
    for (size_t index = 0; index < OutOfCoreStrategies().size(); ++index) {
      const OutOfCoreStrategy& strategy = OutOfCoreStrategies()[index];
      const auto step = SimulateOutOfCore(strategy, problem);
      const auto formula = strategy.closed_form(problem);
      ASSERT_EQ(step.status(), formula.status()) << strategy.name << " trial " << trial;
      if (!step.ok()) continue;
      const OutOfCoreLayer& layer = problem.layers[0];
      ASSERT_EQ(step->step_time, *formula)
          << strategy.name << ": " << problem.layers.size() << " layers, F " << layer.forward.value
          << ", B " << layer.backward.value << ", " << layer.saved.value << " bytes, capacity "
          << problem.capacity.value << ", out " << problem.path.out.value << ", in "
          << problem.path.in.value << "\n"
          << ToString(*step);
      ++compared[index];
    }
  }
  for (const int count : compared) EXPECT_GT(count, 800);
}

TEST(OutOfCore, EquationSevenHoldsForLayersOfAnySizes) {
  Numbers numbers;
  const OutOfCoreStrategy vdnn = *FindOutOfCoreStrategy("vdnn");
  for (int trial = 0; trial < 500; ++trial) {
    OutOfCoreProblem problem = RandomEqualLayers(numbers);
    problem.capacity = Bytes(100);
    for (OutOfCoreLayer& layer : problem.layers) {
      layer.saved = Bytes(numbers.Between(0, 50));
      layer.forward = Nanos(numbers.Between(0, 50));
      layer.backward = Nanos(numbers.Between(0, 50));
    }
    const auto step = SimulateOutOfCore(vdnn, problem);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(step->step_time, *vdnn.closed_form(problem)) << ToString(*step);
  }
}

void ExpectConsistent(const OutOfCoreProblem& problem, const OutOfCoreStep& step) {
  std::array<Nanos, kOutOfCoreLanes> free_at{};
  for (const OutOfCoreInterval& interval : step.intervals) {
    Nanos& free = free_at[static_cast<size_t>(LaneOf(interval.kind))];
    EXPECT_GE(interval.begin, free) << ToString(step);
    free = interval.end;
  }
  EXPECT_GE(step.stall, Nanos(0));
  EXPECT_EQ(step.moved_out, step.moved_in);
  EXPECT_LE(step.peak, std::max(problem.capacity, Bytes(0)));
}

TEST(OutOfCore, NoStrategyExceedsNearMemoryAndBetterOnesAreNeverSlower) {
  Numbers numbers;
  int compared = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    OutOfCoreProblem problem = RandomEqualLayers(numbers);
    for (OutOfCoreLayer& layer : problem.layers) {
      layer.saved = Bytes(numbers.Between(0, 50));
      layer.forward = Nanos(numbers.Between(0, 50));
      layer.backward = Nanos(numbers.Between(0, 50));
    }
    problem.capacity = Bytes(numbers.Between(100, 300));  // any two neighbours fit
    for (const OutOfCoreStrategy& strategy : OutOfCoreStrategies()) {
      const auto step = SimulateOutOfCore(strategy, problem);
      if (!step.ok()) continue;
      SCOPED_TRACE(strategy.name);
      ExpectConsistent(problem, *step);
    }
    const Nanos vdnn = Simulated("vdnn", problem).step_time;
    const Nanos vdnn_plus_plus = Simulated("vdnn_plus_plus", problem).step_time;
    const Nanos capacity_based = Simulated("capacity_based", problem).step_time;
    EXPECT_LE(vdnn_plus_plus, vdnn);
    EXPECT_LE(capacity_based, vdnn_plus_plus);
    compared += capacity_based < vdnn ? 1 : 0;
    EXPECT_LE(Simulated("unified_memory_prefetch", problem).step_time,
              Simulated("unified_memory", problem).step_time);
  }
  EXPECT_GT(compared, 1000);
}

TEST(OutOfCore, AFasterPathNeverHurtsAndNeitherDoesMoreMemory) {
  Numbers numbers;
  for (int trial = 0; trial < 1000; ++trial) {
    OutOfCoreProblem problem = RandomEqualLayers(numbers);
    for (OutOfCoreLayer& layer : problem.layers) {
      layer.saved = Bytes(numbers.Between(0, 50));
      layer.backward = Nanos(numbers.Between(0, 50));
    }
    problem.capacity = Bytes(numbers.Between(100, 300));
    OutOfCoreProblem faster = problem;
    faster.path.in = BytesPerSecond(problem.path.in.value * 2);
    faster.path.out = BytesPerSecond(problem.path.out.value * 2);
    OutOfCoreProblem larger = problem;
    larger.capacity += Bytes(numbers.Between(1, 100));
    for (const OutOfCoreStrategy& strategy : OutOfCoreStrategies()) {
      const auto step = SimulateOutOfCore(strategy, problem);
      if (!step.ok()) continue;
      EXPECT_LE(SimulateOutOfCore(strategy, faster)->step_time, step->step_time) << strategy.name;
      // With more room a part of the layers that left before leaves.
      EXPECT_LE(SimulateOutOfCore(strategy, larger)->step_time, step->step_time) << strategy.name;
    }
  }
}

}  // namespace
}  // namespace siphon
