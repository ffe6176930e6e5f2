// The memory model against reality: what each worker's books count in a training step, with
// nothing measured before. Every third shape under every schedule that runs live;
// SIPHON_TEST_ALL=1 takes all.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "launch/plan_job/matrix_kernels.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "planner/memory/estimate_runtime.h"
#include "tests/conformance/memory_shapes.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

constexpr double kPercent = 10;
// The scratch of 16-bit matrix products is counted beside each pass's fullest moment, whichever
// that is: rather too much than too little.
constexpr double kMostPercentWithScratch = 15;
constexpr double kMostPercentWidened = 25;  // fp16, whose blocks are in float32
constexpr double kLeastPercentWithScratch = -0.1;

// What a product takes for itself depends on the processor's units; figures are for those with this
// one (planner/memory/matrix_scratch.h).
bool HasUnitsForBf16() {
  std::ifstream cpus("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(cpus), {}};
  return text.find(" avx512_bf16") != std::string::npos;
}

class MemoryPrediction : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

class MemoryPredictionOfSmallShapes : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

void Compare(const MemoryCase& one) {
  const ModelSpec model = ModelOf(one.shape);
  const auto plan = PlanOf(one, model);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto predicted = EstimateRuntime({.model = &model,
                                          .partition = &plan->partition,
                                          .schedule = &plan->training,
                                          .microbatch = one.shape.microbatch,
                                          .precision = PrecisionOf(one.shape),
                                          .matrix_kernels = MatrixKernelsHere(),
                                          .moments = one.shape.moments,
                                          .sent = SentTensors::kCopied});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const auto measured = MeasurePeaks(one, model, *plan);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->size(), predicted->workers.size());
  for (size_t worker = 0; worker < measured->size(); ++worker) {
    const MemoryByKind& ours = predicted->workers[worker];
    const bool bf16 = one.shape.precision == "bf16";
    const bool fp16 = one.shape.precision == "fp16";
    const bool scratch = bf16 || (fp16 && MatrixKernelsHere() == MatrixKernels::kTiles);
    const double error = ErrorInPercent(one, worker, Total(ours), (*measured)[worker].total);
    if (!bf16 || HasUnitsForBf16()) {
      const double most = fp16 ? kMostPercentWidened : kMostPercentWithScratch;
      EXPECT_LE(error, scratch ? most : kPercent) << "worker " << worker;
      EXPECT_GE(error, scratch ? kLeastPercentWithScratch : -kPercent) << "worker " << worker;
    }
    // What stays from step to step is known to the byte.
    for (const MemoryKind kind : {MemoryKind::kParameters, MemoryKind::kOptimizer}) {
      EXPECT_EQ((*measured)[worker].by_kind[kind], ours[kind]) << MemoryKindName(kind);
    }
  }
}

TEST_P(MemoryPrediction, IsWithinTenPercentOnEveryWorker) {
  for (const MemoryCase& one : MemoryCases(GetParam())) {
    SCOPED_TRACE(one.shape.name);
    Compare(one);
  }
}

// To the byte: microbatches of few tokens, so that a single number of each, or a tile of
// attention's, is seen.
TEST_F(MemoryPredictionOfSmallShapes, IsExact) {
  for (const MemoryShape& shape : SmallMemoryShapes()) {
    const MemoryCase one{shape, "gpipe"};
    SCOPED_TRACE(shape.name);
    const ModelSpec model = ModelOf(shape);
    const auto plan = PlanOf(one, model);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto predicted = EstimateRuntime({.model = &model,
                                            .partition = &plan->partition,
                                            .schedule = &plan->training,
                                            .microbatch = shape.microbatch,
                                            .moments = shape.moments,
                                            .sent = SentTensors::kCopied});
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    const auto measured = MeasurePeaks(one, model, *plan);
    ASSERT_TRUE(measured.ok()) << measured.status();
    for (size_t worker = 0; worker < measured->size(); ++worker) {
      EXPECT_EQ(Total(predicted->workers[worker]), (*measured)[worker].total)
          << "worker " << worker;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, MemoryPrediction, testing::ValuesIn(LiveScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
