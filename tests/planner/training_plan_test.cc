#include "planner/training_plan.h"

#include <gtest/gtest.h>

#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

TEST(TrainingPlan, PrintsAllItsDecisions) {
  ModelOptions options;
  options.layers = 1;
  options.hidden = 8;
  options.heads = 2;
  options.vocabulary = 11;
  options.sequence_length = 5;
  const absl::StatusOr<ModelSpec> model = BuildModelSpec(options);
  ASSERT_TRUE(model.ok()) << model.status();

  TrainingPlan plan;
  plan.schedule_name = "gpipe";
  plan.global_batch = 4;
  plan.microbatch = 4;
  plan.partition = {{{0, 2}, {2, 3}}};
  plan.shared_parameters = SharedParameters(*model, plan.partition);
  plan.training = ParsedSchedule(
      "0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0STEP\n"
      "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1REDUCE_NORM 1STEP\n");
  plan.evaluation = ParsedSchedule("0F0 0SEND_F0\n1RECV_F0 1F0\n");
  // Stage 0: embeddings 88 + 40, block 12 x 64 weights and 13 x 8 vectors: 1000 of 4 bytes. Stage
  // 1: norm 16, its copy of the embedding 88. Boundary: 4 samples of 5 x 8 floats.
  EXPECT_EQ(ToString(plan, *model),
            R"(siphon plan 1
# Read by siphon simulate --plan FILE. What stands behind a # is a comment.
# Nothing was measured or calculated: F, I and W take 1ms each, B both.

job
  model:              gpt
  schedule:           gpipe
  microbatch:         4
  global_batch:       4
  costs:              unit

stage 0
  worker:             0
  layers:             0 to 1
  names:              transformer.embeddings .. transformer.h.0
  forward:            1ms
  input_backward:     1ms
  weight_backward:    1ms
  step:               0ns
  parameters:         4000B
  gradients:          4000B
  optimizer_state:    0B
  stash:              0B
  kept_for_weights:   0B
  input:              0B
  output:             640B
  forward_workspace:  0B
  backward_workspace: 0B

stage 1
  worker:             1
  layers:             2 to 2
  names:              transformer.head
  forward:            1ms
  input_backward:     1ms
  weight_backward:    1ms
  step:               0ns
  parameters:         416B
  gradients:          416B
  optimizer_state:    0B
  stash:              0B
  kept_for_weights:   0B
  input:              640B
  output:             0B
  forward_workspace:  0B
  backward_workspace: 0B

shared parameters
  transformer.wte.weight: 0, 1

training
  worker 0: 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0STEP
  worker 1: 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1REDUCE_NORM 1STEP

evaluation
  worker 0: 0F0 0SEND_F0
  worker 1: 1RECV_F0 1F0
)");
}

TEST(TrainingPlan, IsReadBackFromItsFile) {
  ModelOptions options;
  options.kind = "mlp";
  options.layers = 3;
  const absl::StatusOr<ModelSpec> model = BuildModelSpec(options);
  ASSERT_TRUE(model.ok()) << model.status();
  TrainingPlan plan{.schedule_name = "zb_h1", .global_batch = 2, .microbatch = 1};
  plan.partition = {{{0, 1}, {1, static_cast<int>(model->layers.size())}}};
  plan.training = ParsedSchedule("0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1I0 1F1 1I1 1W0 1W1\n");
  const PlanText text = ToPlanText(plan, *model, UnitStageCosts(plan, *model), "measured on #1");
  EXPECT_EQ(text.costs, "measured on _1");  // # would begin a comment
  const absl::StatusOr<PlanText> read = ParsePlanText(ToString(text));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, text);
}

}  // namespace
}  // namespace siphon
