#include "planner/plan_difference.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

// A line a row: "step time | 96.0 ms | 48.0 ms | -50.0 %".
std::string Lines(const std::vector<PlanDifference>& rows) {
  std::string text;
  for (const PlanDifference& row : rows) {
    absl::StrAppend(&text, row.what, " | ", row.before, " | ", row.after, " | ", row.change, "\n");
  }
  return text;
}

PlanText TwoStages() {
  PlanText plan;
  plan.schedule = "1f1b";
  plan.microbatch = 4;
  plan.global_batch = 8;
  plan.training = ParsedSchedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  plan.workers = {{.capacity = Bytes(1 << 20)}, {}};
  plan.stages = {{.worker = WorkerId(0), .layers = {0, 2}, .cost = {.stash = Bytes(1 << 19)}},
                 {.worker = WorkerId(1), .layers = {2, 3}, .cost = {.stash = Bytes(1 << 18)}}};
  plan.predicted = {Nanos(96'000'000), Nanos(0), {Bytes(1 << 20), Bytes(1 << 18)}};
  return plan;
}

// The same with the activations of stage 0 on two lenders.
PlanText TwoStagesSwapped() {
  PlanText plan = TwoStages();
  plan.strategy = "d2d_swap";
  plan.predicted = {Nanos(120'000'000), Nanos(80'000'000), {Bytes(1 << 19), Bytes(1 << 18)}};
  plan.mapping.device_of_worker = {DeviceId(2), DeviceId(0)};
  plan.training = ParsedSchedule("0SWAP_OUT0.0 0F0 0SWAP_OUT1.0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  plan.memory.stages.resize(2);
  plan.memory.stages[0].groups = {
      {{GroupKind::kActivations, {0, 2}, Bytes(1 << 19)},
       {Placement::kPeerSwap, {{DeviceId(1), Bytes(1 << 18)}, {DeviceId(0), Bytes(1 << 18)}}}}};
  return plan;
}

TEST(ComparePlans, PutsValuesSideBySide) {
  EXPECT_EQ(Lines(ComparePlans(TwoStages(), TwoStagesSwapped())),
            "schedule | 1f1b | 1f1b | \n"
            "microbatches x size | 2 x 4 | 2 x 4 | \n"
            "workers | 2 | 2 | \n"
            "strategy | - | d2d_swap | \n"
            "step time | 96.0 ms | 120 ms | +25.0 %\n"
            "lower bound | - | 80.0 ms | \n"
            "largest peak | 1.00 MiB | 512 KiB | -50.0 %\n"
            "peak of worker 0 | 1.00 MiB | 512 KiB | -50.0 %\n"
            "peak of worker 1 | 256 KiB | 256 KiB | \n"
            "capacity of worker 0 | 1.00 MiB | 1.00 MiB | \n"
            "capacity of worker 1 | - | - | \n"
            "tensors: keep | 1.25 MiB | 256 KiB | -80.0 %\n"
            "tensors: recompute | 0 B | 0 B | \n"
            "tensors: d2d_swap | 0 B | 1.00 MiB | \n"
            "tensors: host_swap | 0 B | 0 B | \n"
            "tensors: nvme_swap | 0 B | 0 B | \n"
            "lent by device 0 | 0 B | 512 KiB | \n"
            "lent by device 1 | 0 B | 512 KiB | \n"
            "devices of workers | - | 2 0 | \n"
            "stage 0 | layers 0 to 1 on worker 0 | layers 0 to 1 on worker 0 | \n"
            "stage 1 | layers 2 to 2 on worker 1 | layers 2 to 2 on worker 1 | \n");
}

TEST(ComparePlans, TakesPlansOfDifferentShapes) {
  PlanText one;
  one.training = ParsedSchedule("0F0 0B0\n");
  one.training.replicas = 2;
  one.workers.resize(1);
  one.stages = {{.layers = {0, 3}}};
  const std::string lines = Lines(DifferingRows(ComparePlans(one, TwoStages())));
  EXPECT_NE(lines.find("microbatches x size | 1 x 1 x 2 replicas | 2 x 4 | \n"), std::string::npos)
      << lines;
  EXPECT_NE(lines.find("stage 1 | - | layers 2 to 2 on worker 1 | \n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("peak of worker 1 | - | 256 KiB | \n"), std::string::npos) << lines;
}

TEST(DifferingRows, LeavesOutWhatIsEqual) {
  EXPECT_EQ(Lines(DifferingRows(ComparePlans(TwoStagesSwapped(), TwoStagesSwapped()))), "");
  PlanText faster = TwoStages();
  faster.predicted.step_time = Nanos(95'999'000);  // reads alike, is not
  EXPECT_EQ(Lines(DifferingRows(ComparePlans(TwoStages(), faster))),
            "step time | 96.0 ms | 96.0 ms | -0.0 %\n");
}

// Whatever the plans: the other way round, the columns change places.
TEST(ComparePlans, IsSymmetricInItsColumns) {
  const auto forth = ComparePlans(TwoStages(), TwoStagesSwapped());
  const auto back = ComparePlans(TwoStagesSwapped(), TwoStages());
  ASSERT_EQ(forth.size(), back.size());
  for (size_t row = 0; row < forth.size(); ++row) {
    EXPECT_EQ(forth[row].what, back[row].what);
    EXPECT_EQ(forth[row].before, back[row].after);
    EXPECT_EQ(forth[row].after, back[row].before);
  }
}

}  // namespace
}  // namespace siphon
