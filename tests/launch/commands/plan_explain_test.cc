#include "launch/commands/plan_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kJob[] = R"(
model: {kind: gpt, layers: 4, hidden: 32, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 32, microbatch: 4}
pipeline: {stages: 2}
memory: {capacity: 1GB}
)";

class ExplainTablesOf : public CommandTest {};

// Of a stage that steps on the host, which layers do, and which come in for a step on the device.
TEST_F(ExplainTablesOf, StatesSayWhereTheirLayersStep) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  StagePlan& stage = studied->plan.memory.stages[0];
  stage.update = UpdatePlace::kHost;
  stage.groups = {};
  for (int layer = 0; layer < 2; ++layer) {
    stage.groups.push_back(
        {.group = {.kind = GroupKind::kOptimizerState,
                   .layers = {layer, layer + 1},
                   .bytes = Bytes(8)},
         .choice = {.placement = Placement::kHostSwap, .steps_on_device = layer == 1}});
  }
  const std::vector<PageTable> tables = ExplainTables(*studied);
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  const std::vector<std::string>& there = tables[0].rows[0];
  const std::vector<std::string>& here = tables[0].rows[1];
  EXPECT_EQ(there[4], "host_swap");
  EXPECT_EQ(there[5], "none: it steps there");
  EXPECT_THAT(there[6], StartsWith("the host steps these layers"));
  EXPECT_EQ(here[4], "host_swap, steps on device");
  EXPECT_EQ(here[5], "none: no room elsewhere");
  EXPECT_THAT(here[6], StartsWith("needed by the optimizer step only; copies take "));
  EXPECT_TRUE(ExplainPlan(*studied)[0].groups[0].steps_on_host);
  EXPECT_FALSE(ExplainPlan(*studied)[0].groups[1].steps_on_host);
}

// Neighbouring layers of which the same is said are in one row.
TEST_F(ExplainTablesOf, LayersThatAreAlikeShareARow) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  StagePlan& stage = studied->plan.memory.stages[0];
  stage.groups = {};
  for (int layer = 0; layer < 3; ++layer) {
    stage.groups.push_back(
        {.group = {.kind = GroupKind::kActivations,
                   .layers = {layer, layer + 1},
                   .bytes = Bytes(layer == 2 ? 16 : 8),
                   .recompute = Nanos(1'000)},
         .choice = {.placement = Placement::kHostSwap, .second_choice = Placement::kRecompute}});
  }
  const std::vector<PageTable> tables = ExplainTables(*studied);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0][5], "recompute");
  EXPECT_EQ(tables[0].rows[0][0], "activations of layers 0 to 1, 2 groups");
  EXPECT_EQ(tables[0].rows[0][1], "2 x 2 x 8 B");
  EXPECT_EQ(tables[0].rows[1][0], "activations of layer 2");
  // When they are away for the first time, and what the others would cost.
  EXPECT_THAT(tables[0].rows[0][3], HasSubstr(" - "));
  EXPECT_THAT(tables[0].rows[0][6], HasSubstr("; else recompute 1.00 us, d2d_swap "));
}

// Where no linked device has room, that is said, and no time.
TEST_F(ExplainTablesOf, SaysWhetherADeviceHasRoom) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  studied->problem.topology = UniformTopology(2, BytesPerSecond(1'000'000), Nanos(0));
  studied->plan.memory.stages[0].groups = {{.group = {.kind = GroupKind::kActivations,
                                                      .layers = {0, 1},
                                                      .bytes = Bytes(int64_t{1} << 40)},
                                            .choice = {.placement = Placement::kRecompute}}};
  EXPECT_THAT(ExplainPlan(*studied)[0].groups[0].why, HasSubstr("d2d_swap has no room ("));
  studied->problem.topology.links.clear();
  EXPECT_THAT(ExplainPlan(*studied)[0].groups[0].why, HasSubstr("d2d_swap has no link"));
}

}  // namespace
}  // namespace siphon
