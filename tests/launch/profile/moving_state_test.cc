#include "launch/profile/moving_state.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/plan_job/plan_job.h"
#include "launch/profile/job_problem.h"
#include "planner/performance/device_spec.h"

namespace siphon {
namespace {

constexpr Bytes kEmbedding(64 * 16 * 4);  // of 64 tokens, 16 wide

// A gpt whose head uses the embedding of the first layer again, on two workers.
class TiedGpt : public testing::TestWithParam<int> {
 protected:
  TiedGpt() {
    config_.model.kind = "gpt";
    config_.model.layers = 4;
    config_.model.hidden = 16;
    config_.model.heads = 2;
    config_.data.kind = "synthetic";
    config_.data.sequence_length = 8;
    config_.train.global_batch = 8;
    config_.train.microbatch = 2;
    config_.pipeline.stages = GetParam();
    ModelOptions options;
    options.kind = "gpt";
    options.layers = 4;
    options.hidden = 16;
    options.heads = 2;
    options.sequence_length = 8;
    options.vocabulary = 64;
    model_ = BuildModelSpec(options).value();
    plan_ = PlanJob(config_, model_, 0).value();
  }
  PlanningProblem Problem() const {
    const DeviceSpec device = FindDeviceSpec("V100").value();
    const PlannedJob planned{config_, model_, plan_};
    return ProblemOfJob(planned, {.costs = {.device = &device}}).value().problem;
  }

  JobConfig config_;
  ModelSpec model_;
  TrainingPlan plan_;
};

// [worker]: held, and of its layers.
std::vector<MemoryByKind> StateOf(const PlanningProblem& problem) {
  std::vector<MemoryByKind> state = problem.held;
  for (size_t stage = 0; stage < problem.partition.stages.size(); ++stage) {
    MemoryByKind& mine = state[problem.schedule.worker_of_stage[stage].value];
    const StageRange& layers = problem.partition.stages[stage];
    for (int layer = layers.begin; layer < layers.end; ++layer) {
      mine[MemoryKind::kParameters] += problem.profile.layers[layer].parameters;
      mine[MemoryKind::kGradients] += problem.profile.layers[layer].gradients;
      mine[MemoryKind::kOptimizer] += problem.profile.layers[layer].optimizer_state;
    }
  }
  return state;
}

TEST_P(TiedGpt, HoldsWhatSeveralLayersUse) {
  const PlanningProblem before = Problem();
  PlanningProblem after = before;
  HoldWhatCannotMove(MemoryInputsOf({config_, model_, plan_}).value(), after);
  EXPECT_EQ(StateOf(after), StateOf(before));

  const LayerProfile& first = after.profile.layers.front();
  EXPECT_EQ(first.parameters, before.profile.layers.front().parameters - kEmbedding);
  EXPECT_EQ(first.parameters, Bytes(8 * 16 * 4)) << "positions";
  EXPECT_EQ(first.gradients, first.parameters);
  // Every copy of the embedding has moments of its own, which nobody else needs.
  EXPECT_EQ(first.optimizer_state, (first.parameters + kEmbedding) * 2);
  const bool alone = GetParam() == 1;
  EXPECT_EQ(after.held[0][MemoryKind::kParameters], kEmbedding);
  EXPECT_EQ(after.held[0][MemoryKind::kGradients], kEmbedding * (alone ? 2 : 1));
  EXPECT_EQ(after.held[0][MemoryKind::kOptimizer], Bytes(4)) << "the number of updates";
  for (const LayerProfile& layer : after.profile.layers) {
    EXPECT_EQ(layer.gradients, layer.parameters) << layer.name;
  }
  EXPECT_EQ(first.shared_parameters, kEmbedding);
  EXPECT_EQ(first.shared_gradients, kEmbedding);
  // Where both uses are of one stage, the copies of a step are of one tensor.
  EXPECT_EQ(after.profile.layers.back().shared_parameters, alone ? Bytes(0) : kEmbedding);
  EXPECT_EQ(after.profile.layers.back().shared_gradients, alone ? Bytes(0) : kEmbedding);
}

// Room for the other stage's gradient, and for the sum.
TEST_P(TiedGpt, AddsUpWhatStagesShare) {
  const std::vector<Bytes> shared = SharedGradientBytes(model_, plan_.partition, plan_.training);
  const bool alone = GetParam() == 1;
  ASSERT_EQ(shared.size(), static_cast<size_t>(GetParam()));
  EXPECT_EQ(shared.front(), alone ? Bytes(0) : kEmbedding * 2);
  EXPECT_EQ(shared.back(), shared.front());
  for (size_t worker = 1; worker + 1 < shared.size(); ++worker) EXPECT_EQ(shared[worker], Bytes(0));
}

INSTANTIATE_TEST_SUITE_P(Workers, TiedGpt, testing::Values(1, 2, 4));

}  // namespace
}  // namespace siphon
