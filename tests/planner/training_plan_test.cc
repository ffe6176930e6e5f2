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
  // Stage 0: embeddings 88 + 40, block 12 x 64 weights and 13 x 8 vectors. Stage 1: norm 16, its
  // copy of the embedding 88.
  EXPECT_EQ(ToString(plan, *model),
            "model gpt: 3 layers, 1016 parameters\n"
            "schedule gpipe: 2 workers, 2 stages, 1 microbatches of 4, global batch 4\n"
            "partition\n"
            "  stage 0 on worker 0: layers 0 to 1, transformer.embeddings .. transformer.h.0, "
            "1000 parameters (3.91 KiB in fp32)\n"
            "  stage 1 on worker 1: layers 2 to 2, transformer.head, 104 parameters (416 B in "
            "fp32)\n"
            "parameters that several stages use\n"
            "  transformer.wte.weight: stages 0, 1\n"
            "training, one line a worker\n"
            "0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0STEP\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1REDUCE_NORM 1STEP\n"
            "evaluation, one line a worker\n"
            "0F0 0SEND_F0\n"
            "1RECV_F0 1F0\n");
}

}  // namespace
}  // namespace siphon
