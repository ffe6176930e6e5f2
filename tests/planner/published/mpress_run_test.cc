#include "planner/published/mpress_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/lowering/make_groups.h"
#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

using testing::ElementsAre;

MpressInstance InstanceOf(const char* row) {
  return MakeMpressInstance(FindMpressRow(row).value(), Dgx1(), ToolsWithFloors()).value();
}

absl::StatusOr<PlannedStep> Refuse(const PlanningProblem&) {
  return absl::ResourceExhaustedError("worker 0 is too full");
}
absl::StatusOr<PlannedStep> Break(const PlanningProblem&) {
  return absl::InvalidArgumentError("no such thing");
}

// Stage 0 of GPT-5.3B: an embedding without activations and three blocks, eight microbatches.
TEST(SavedBy, CountsWhatEachWayOfStageZeroSpares) {
  const PlanningProblem problem = InstanceOf("GPT-5.3B").problem;
  PlannedStep planned{.memory = KeepEverything(problem.profile, problem.partition)};
  std::vector<PlannedGroup>& groups = planned.memory.stages[0].groups;
  groups[0].choice.placement = Placement::kRecompute;
  groups[1].choice.placement = Placement::kPeerSwap;
  planned.memory.stages[5].groups[0].choice.placement = Placement::kPeerSwap;
  StagePlan& last = planned.memory.stages[7];
  last.update = UpdatePlace::kHost;
  for (PlannedGroup& each : last.groups) {
    if (each.group.kind == GroupKind::kOptimizerState) {
      each.choice.placement = Placement::kHostSwap;
    }
  }
  constexpr int64_t kSbh = int64_t{1024} * 2 * 4096;
  EXPECT_EQ(SavedBy(Placement::kRecompute, problem, planned).bytes,
            Bytes(8 * (74 * kSbh - 2 * kSbh)));
  const MemorySaved peers = SavedBy(Placement::kPeerSwap, problem, planned);
  EXPECT_EQ(peers.bytes, Bytes((8 + 3) * 74 * kSbh));
  EXPECT_THAT(peers.stages, ElementsAre(StageId(0), StageId(5)));
  constexpr int64_t kBlock = 12 * int64_t{4096} * 4096 + 13 * 4096;
  constexpr int64_t kHead = int64_t{50257} * 4096 + 2 * 4096;  // and the last norm
  const MemorySaved host = SavedBy(Placement::kHostSwap, problem, planned);
  EXPECT_EQ(host.bytes, Bytes(12 * (4 * kBlock + kHead)));
  EXPECT_THAT(host.stages, ElementsAre(StageId(7)));
}

TEST(RunInstance, SaysWhyAModelDoesNotFit) {
  const MpressRun run = RunInstance(InstanceOf("GPT-5.3B"), {"refuse", "", Refuse}).value();
  EXPECT_EQ(run.model, "GPT-5.3B");
  EXPECT_EQ(run.strategy, "refuse");
  EXPECT_EQ(run.status.ToString(), "RESOURCE_EXHAUSTED: worker 0 is too full");
  EXPECT_EQ(run.tflops, 0);
}

TEST(RunInstance, PassesOtherErrorsOn) {
  EXPECT_EQ(RunInstance(InstanceOf("GPT-5.3B"), {"break", "", Break}).status().ToString(),
            "INVALID_ARGUMENT: no such thing");
}

}  // namespace
}  // namespace siphon
