#include "planner/performance/compare_out_of_core.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/performance/out_of_core_problem.h"

namespace siphon {
namespace {

// Six layers, F 4, B 2 + 4, 10 bytes saved; 3 bytes each always stay, with a workspace of 6 for
// the fullest of them 24 in all.
ModelProfile SixLayers() {
  ModelProfile profile;
  for (int layer = 1; layer <= 6; ++layer) {
    LayerProfile row;
    row.name = absl::StrCat(layer);
    row.forward = Nanos(4);
    row.input_backward = Nanos(2);
    row.weight_backward = Nanos(4);
    row.parameters = Bytes(1);
    row.gradients = Bytes(1);
    row.optimizer_state = Bytes(1);
    row.forward_workspace = Bytes(5);
    row.backward_workspace = Bytes(layer);
    row.saved = {{"a", Bytes(4)}, {"b", Bytes(6)}};
    profile.layers.push_back(row);
  }
  return profile;
}

FarMemoryPath BytesPerNanosecond(double rate) {
  const BytesPerSecond each(static_cast<int64_t>(rate * 1e9));
  return {each, each, Nanos(0)};
}

TEST(OutOfCoreProblem, LeavesToSavedTensorsWhatNothingElseTakes) {
  EXPECT_EQ(ResidentBytes(SixLayers()), Bytes(6 * 3 + 6));
  const auto problem = OutOfCoreProblemOf(SixLayers(), BytesPerNanosecond(1), Bytes(54));
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->capacity, Bytes(30));
  EXPECT_EQ(problem->layers[5], (OutOfCoreLayer{"6", Nanos(4), Nanos(6), Bytes(10)}));
  EXPECT_EQ(OutOfCoreProblemOf(SixLayers(), BytesPerNanosecond(1), Bytes(24)).status().message(),
            "weights, gradients, optimizer state and workspace take 24 B, near memory has 24 B; "
            "nothing is left for saved tensors");
}

TEST(OutOfCoreProblem, RefusesWhatCannotBeCounted) {
  const auto error = [](FarMemoryPath path, Bytes near_memory) {
    const absl::Status status = OutOfCoreProblemOf(SixLayers(), path, near_memory).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error({BytesPerSecond(0), BytesPerSecond(1'000), Nanos(0)}, Bytes(54)),
            "a path to far memory of 0 B/s out and 1.00 kB/s in; each must be between 1 kB/s and "
            "1000000 TB/s");
  const int64_t years = 3'000'000'000'000'000'000;
  EXPECT_EQ(error({BytesPerSecond(1'000), BytesPerSecond(1'000), Nanos(years)}, Bytes(54)),
            "copying what the layers save takes 1.8e+10 s each way; write a faster link, a shorter "
            "latency or a smaller batch");
  error(BytesPerNanosecond(1), Bytes(int64_t{1} << 62));
}

TEST(CompareOutOfCore, ABatchThatFitsIsLeftAlone) {
  const auto comparison = CompareOutOfCore(SixLayers(), BytesPerNanosecond(1), Bytes(84));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->results.size(), OutOfCoreStrategies().size());
  ASSERT_EQ(comparison->conclusions.size(), 2u);
  EXPECT_EQ(comparison->conclusions[0], "The batch fits in near memory: swap nothing.");
  // 4 + 5 x 10 + 10 + 10 + 5 x 10 + 6 = 130 against 60.
  EXPECT_EQ(comparison->conclusions[1],
            "vDNN-like swapping, which moves every layer all the same, would take 2.17 times as "
            "long.");
}

TEST(CompareOutOfCore, SaysWhetherThePapersConclusionHolds) {
  // 60 bytes in 20: twice the link hides more than twice the near memory, of which 24 always stay.
  auto comparison = CompareOutOfCore(SixLayers(), BytesPerNanosecond(1), Bytes(44));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->conclusions[0], "The batch saves 40 B more than near memory has room for.");
  // Forward 4 + max(20, 4 + 4 x 10) = 48, backward 6 + max(30, 6 + 40) = 52.
  // Twice the link: 4 + max(20, 24) + 6 + max(30, 26) = 64. Twice the memory: all fits, 60.
  EXPECT_EQ(comparison->conclusions[1],
            "Twice the link brings capacity-based swapping from 100 ns to 64 ns, twice the near "
            "memory to 60 ns: here near capacity buys more than link throughput, against the "
            "paper's conclusion.");
  ModelProfile large = SixLayers();
  for (LayerProfile& layer : large.layers) layer.saved = {{"a", Bytes(100)}};
  comparison = CompareOutOfCore(large, BytesPerNanosecond(10), Bytes(224));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  // Same times; twice 224 leaves room for four layers of six: 4 + max(20, 24) + 6 + max(30, 26).
  EXPECT_EQ(comparison->conclusions[1],
            "Twice the link brings capacity-based swapping from 100 ns to 64 ns, twice the near "
            "memory to 64 ns: as the paper concludes, buy link throughput rather than near "
            "capacity.");
}

TEST(CompareOutOfCore, SaysWhenNothingIsLeftToBuy) {
  const auto comparison = CompareOutOfCore(SixLayers(), BytesPerNanosecond(100), Bytes(44));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->conclusions[1],
            "Capacity-based swapping hides all of it: nothing faster can be bought on this path.");
}

TEST(CompareOutOfCore, StrategiesThatDoNotFitSayWhy) {
  const auto comparison = CompareOutOfCore(SixLayers(), BytesPerNanosecond(1), Bytes(34));
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  for (const OutOfCoreResult& result : comparison->results) {
    EXPECT_EQ(result.step.has_value(), result.why_not.empty()) << result.name;
  }
  EXPECT_EQ(comparison->results[0].why_not,
            "all layers save 60 B, near memory has 10 B for saved tensors");
}

}  // namespace
}  // namespace siphon
