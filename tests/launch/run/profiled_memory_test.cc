// The memory model with a measured profile against reality: each layer of a shape is weighed alone,
// and from that the peak of every worker is predicted in pipelines that were never run. Every
// third shape under every schedule that runs live; SIPHON_TEST_ALL=1 takes all.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "launch/plan_job/matrix_kernels.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/layer_profile/layer_rounds.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "pipeline/torch/torch_stage.h"
#include "planner/memory/estimate_runtime.h"
#include "planner/status.h"
#include "tests/conformance/memory_shapes.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

constexpr double kPercent = 3;

// Bytes alone are looked at, which are the same in every round: one with each kind of backward.
absl::StatusOr<ModelProfile> Measure(const MemoryShape& shape) {
  SIPHON_ASSIGN_OR_RETURN(const PreparedJob job, PrepareJob(JobOf(shape), {}));
  SIPHON_ASSIGN_OR_RETURN(const Batch batch, LayerRounds::FirstBatch(job));
  SIPHON_ASSIGN_OR_RETURN(LayerRounds rounds, LayerRounds::Make(job, batch));
  SIPHON_RETURN_IF_ERROR(rounds.Run(0, BackwardMode::kWhole, Noting::kOn));
  SIPHON_RETURN_IF_ERROR(rounds.Run(1, BackwardMode::kSplit, Noting::kOn));
  return ModelProfile{.model = shape.model.kind,
                      .source = "measured",
                      .microbatch = shape.microbatch,
                      .layers = rounds.Profiles()};
}

class ProfiledMemory : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    InstallCountingAllocator();
    SetTorchThreads(1);
  }

  static absl::StatusOr<ModelProfile> ProfileOf(const MemoryShape& shape) {
    static auto* const known = new std::map<std::string, absl::StatusOr<ModelProfile>>;
    const auto found = known->find(shape.name);
    if (found != known->end()) return found->second;
    return known->emplace(shape.name, Measure(shape)).first->second;
  }

  static void Compare(const MemoryCase& one);
};

void ProfiledMemory::Compare(const MemoryCase& one) {
  const ModelSpec model = ModelOf(one.shape);
  const auto profile = ProfileOf(one.shape);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto plan = PlanOf(one, model);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto predicted = EstimateRuntime({.model = &model,
                                          .partition = &plan->partition,
                                          .schedule = &plan->training,
                                          .microbatch = one.shape.microbatch,
                                          .precision = PrecisionOf(one.shape),
                                          .matrix_kernels = MatrixKernelsHere(),
                                          .moments = one.shape.moments,
                                          .sent = SentTensors::kCopied,
                                          .profile = &*profile});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const auto measured = MeasurePeaks(one, model, *plan);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->size(), predicted->workers.size());
  for (size_t worker = 0; worker < measured->size(); ++worker) {
    const double error =
        ErrorInPercent(one, worker, Total(predicted->workers[worker]), (*measured)[worker].total);
    EXPECT_LE(std::abs(error), kPercent) << "worker " << worker;
  }
}

TEST_P(ProfiledMemory, IsPredictedWithinThreePercentOnEveryWorker) {
  for (const MemoryCase& one : MemoryCases(GetParam())) {
    SCOPED_TRACE(one.shape.name);
    Compare(one);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, ProfiledMemory, testing::ValuesIn(LiveScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
