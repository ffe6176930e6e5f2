// Plans that compute activations again against reality: no worker's books ever count more than its
// capacity, and what was predicted is close. Two or three shapes under every schedule that runs
// live; SIPHON_TEST_ALL=1 takes all.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "launch/profile/worker_problem.h"
#include "pipeline/torch/memory/counting_allocator.h"
#include "planner/drafts/draft_plan.h"
#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "planner/performance/device_spec.h"
#include "planner/simulator/simulate.h"
#include "planner/stage_cost.h"
#include "planner/status.h"
#include "tests/conformance/memory_shapes.h"
#include "tests/launch/run/tight_memory.h"
#include "tests/pipeline/live_schedules.h"

namespace siphon {
namespace {

class RecomputedMemory : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

TEST_P(RecomputedMemory, StaysWithinItsCapacity) {
  const auto recomputes = [](const PreparedJob& prepared) {
    return !prepared.plan.memory.stages.empty();
  };
  ExpectWithinCapacities(GetParam(), {{"recompute", recomputes, -0.1}});
}

class RecomputedMemoryOfFirstTensors : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }
};

// With layers that are computed again before their backward, and some microbatches that stay.
using RecomputedMemoryOfAuto = RecomputedMemory;
TEST_P(RecomputedMemoryOfAuto, StaysWithinItsCapacity) {
  const auto leaves = [](const PreparedJob& prepared) {
    return !prepared.plan.memory.stages.empty();
  };
  ExpectWithinCapacities(GetParam(), {{"auto", leaves, -0.1}});
}

// The peaks of a plan whose stage computes the first so many tensors of its second layer again, an
// action before the backward, and keeps everything else: predicted, and on a worker's books.
absl::StatusOr<std::pair<Bytes, Bytes>> PeaksWithFirstTensors(const MemoryCase& one,
                                                              const WorkersOfJob& job,
                                                              const PlanningProblem& problem,
                                                              int first_tensors) {
  constexpr int kLayer = 1;
  DraftPlan draft = KeepingDraft(problem);
  StageDraft& stage = draft.stages[0];
  stage.activations[kLayer] = Placement::kRecompute;
  stage.first_tensors[kLayer] = first_tensors;
  stage.layers_made_early = stage.actions_made_early = 1;
  TrainingPlan plan = job.planned.plan;
  plan.memory = PlanOf(problem, draft);
  SIPHON_ASSIGN_OR_RETURN(plan.training,
                          LowerMemoryPlan(problem.schedule, plan.memory, LoweringOf(draft)));
  SIPHON_ASSIGN_OR_RETURN(
      const SimulatedStep step,
      Simulate(SimulationOf(problem, draft.mapping, plan.memory, plan.training)));
  SIPHON_ASSIGN_OR_RETURN(const auto measured, MeasurePeaks(one, job.planned.model, plan));
  return std::make_pair(Total(step.peak[0]), measured[0].total);
}

// Operations on the way to them take their room while the rest of the layer's tensors is there.
TEST_F(RecomputedMemoryOfFirstTensors, IsPredicted) {
  const DeviceSpec device = FindDeviceSpec("V100").value();
  int plans = 0;
  for (MemoryShape shape : MemoryShapes()) {
    SCOPED_TRACE(shape.name);
    shape.workers = 1;
    const MemoryCase one{shape, "gpipe"};
    JobConfig config = JobOf(shape);
    config.train.global_batch = shape.microbatch * shape.microbatches;
    config.pipeline.schedule = one.schedule;
    config.pipeline.stages = 1;
    const ModelSpec model = ModelOf(shape);
    const auto plan = PlanOf(one, model);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const WorkersOfJob job{.planned = {config, model, *plan}, .costs = {.device = &device}};
    auto made = ProblemOfWorkers(job, "auto");
    ASSERT_TRUE(made.ok()) << made.status();
    const PlanningProblem& problem = made->problem;
    const LayerProfile& layer = problem.profile.layers[1];
    for (const int first : FirstTensorsOf(layer)) {
      // The rest is what the next layer saves: computed again as a whole.
      if (FirstTensorsGroup(problem.profile, 1, first).bytes ==
          SavedBytes(layer) - SavedByBoth(layer, problem.profile.layers[2])) {
        continue;
      }
      const auto peaks = PeaksWithFirstTensors(one, job, problem, first);
      ASSERT_TRUE(peaks.ok()) << peaks.status();
      ++plans;
      EXPECT_GE(ErrorInPercent(one, 0, peaks->first, peaks->second), 0) << first << " tensors";
      EXPECT_LE(ErrorInPercent(one, 0, peaks->first, peaks->second), 25) << first << " tensors";
    }
  }
  EXPECT_GE(plans, 40);
}

INSTANTIATE_TEST_SUITE_P(Schedules, RecomputedMemory, testing::ValuesIn(TightScheduleNames()),
                         [](const auto& info) { return TestNameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Schedules, RecomputedMemoryOfAuto,
                         testing::Values("gpipe", "1f1b", "interleaved_1f1b"),
                         [](const auto& info) { return TestNameOf(info.param); });

}  // namespace
}  // namespace siphon
