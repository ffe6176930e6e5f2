#include "launch/output/run_summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siphon {
namespace {

TEST(RunSummary, SaysHowItEndedWhereThingsAreAndWhatToTryNext) {
  const RunSummary summary = {
      .steps_done = 500,
      .total_steps = 500,
      .duration = Nanos(200'000'000'000),
      .training = Nanos(100'000'000'000),
      .tokens = 2'000'000,
      .last_loss = 1.75,
      .last_validation_loss = 1.8,
      .parked = "2 MiB a step to the host",
      .recomputed = "3.0 % of the workers' time",
      .checkpoint = "runs/x/checkpoints/step-00000500",
      .checkpoint_step = 500,
      .metrics = "runs/x/metrics.jsonl",
      .trace = "runs/x/measured.trace.json",
      .warnings = {"a checkpoint could not be written"},
      .next_commands = {
          "siphon generate --checkpoint runs/x/checkpoints/step-00000500 --prompt In"}};
  EXPECT_EQ(ToString(summary),
            "done after step 500 of 500, in 3 min 20 s (20000 tokens/s): loss 1.7500, validation "
            "loss 1.8000\n"
            "  warning     a checkpoint could not be written\n"
            "  parked      2 MiB a step to the host\n"
            "  recomputed  3.0 % of the workers' time\n"
            "  checkpoint  runs/x/checkpoints/step-00000500\n"
            "  metrics     runs/x/metrics.jsonl\n"
            "  trace       runs/x/measured.trace.json (open it at https://ui.perfetto.dev)\n"
            "next:\n"
            "  siphon generate --checkpoint runs/x/checkpoints/step-00000500 --prompt In\n");
}

TEST(RunSummary, SaysWhichStepsNoCheckpointHas) {
  RunSummary summary{.steps_done = 8, .total_steps = 8};
  EXPECT_THAT(ToString(summary), testing::HasSubstr("checkpoint  none: what was trained is not "
                                                    "kept (checkpoint.every_steps writes"));
  summary.checkpoint = "run/step-00000006";
  summary.checkpoint_step = 6;
  EXPECT_THAT(ToString(summary),
              testing::HasSubstr("checkpoint  run/step-00000006, which has 6 of 8 steps; the later "
                                 "ones are in none\n"));
}

TEST(RunSummary, LeavesOutWhatThereIsNot) {
  EXPECT_EQ(ToString({.first_step = 3, .steps_done = 3, .total_steps = 10}),
            "stopped after step 3 of 10, in 0 s\n");
}

TEST(RunSummary, SaysWhyThereIsNothingToDo) {
  EXPECT_EQ(ToString({.first_step = 4, .steps_done = 4, .total_steps = 4}),
            "nothing to do: all 4 steps are done\n");
  EXPECT_EQ(ToString({.first_step = 4, .steps_done = 4, .total_steps = 2}),
            "nothing to do: the checkpoint is at step 4, beyond train.steps 2\n");
}

}  // namespace
}  // namespace siphon
