#include "launch/commands/plan_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/commands/plan_copy_costs.h"
#include "tests/launch/commands/run_command.h"
#include "tests/planner/schedule_testing.h"

namespace siphon {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kJob[] = R"(
model: {kind: gpt, layers: 4, hidden: 32, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 32, microbatch: 4}
pipeline: {stages: 2}
memory: {capacity: 1GB}
)";

class ExplainTablesOf : public CommandTest {};

// Every microbatch's activations of stage 0 go where they are placed.
void LetAllGo(StudiedPlan& studied) {
  const std::vector<PlannedGroup>& groups = studied.plan.memory.stages[0].groups;
  std::vector<Action> program;
  for (const Action& action : studied.plan.training.programs[0]) {
    if (IsMemory(action.kind)) continue;
    for (size_t group = 0; action.kind == ActionKind::kForward && group < groups.size(); ++group) {
      Action goes = action;
      goes.kind = IsSwap(groups[group].choice.placement) ? ActionKind::kSwapOut : ActionKind::kDrop;
      goes.group = GroupId(static_cast<int>(group));
      program.push_back(goes);
    }
    program.push_back(action);
  }
  studied.plan.training.programs[0] = std::move(program);
}

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
  EXPECT_EQ(there[5], "none: no room on a drive");
  EXPECT_THAT(there[6], StartsWith("the host steps these layers"));
  EXPECT_EQ(here[4], "host_swap, steps on device");
  EXPECT_EQ(here[5], "none: no room elsewhere");
  EXPECT_THAT(here[6], StartsWith("needed by the optimizer step only; copies alone take "));
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
  LetAllGo(*studied);
  const std::vector<PageTable> tables = ExplainTables(*studied);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0][5], "recompute");
  EXPECT_EQ(tables[0].rows[0][0], "activations of layers 0 to 1, 2 groups");
  EXPECT_EQ(tables[0].rows[0][1], "2 x 2 x 8 B");
  EXPECT_EQ(tables[0].rows[1][0], "activations of layer 2");
  EXPECT_EQ(tables[0].rows[1][1], "2 x 16 B");
  std::vector<Action>& program = studied->plan.training.programs[0];
  std::erase_if(program, [](const Action& action) {
    return action.kind == ActionKind::kSwapOut && action.group == GroupId(2) &&
           action.microbatch.value % 2 == 0;
  });
  EXPECT_EQ(ExplainTables(*studied)[0].rows[1][1], "1 of 2 x 16 B");
  // When they are away for the first time, and what the others would cost.
  EXPECT_THAT(tables[0].rows[0][3], HasSubstr(" - "));
  EXPECT_THAT(tables[0].rows[0][6], HasSubstr("; else recompute 1.00 us exposed, d2d_swap "));
}

// The first layer's are gone behind their forward, and nothing brings either's in.
TEST_F(ExplainTablesOf, ActivationsSayWhetherTheyStream) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  StagePlan& stage = studied->plan.memory.stages[0];
  stage.groups = {};
  for (int layer = 0; layer < 2; ++layer) {
    stage.groups.push_back({.group = {.kind = GroupKind::kActivations,
                                      .layers = {layer, layer + 1},
                                      .bytes = Bytes(8)},
                            .choice = {.placement = Placement::kHostSwap}});
  }
  const auto reasons = [&](absl::string_view program) {
    studied->plan.training.programs[0] = ParsedSchedule(program).programs[0];
    const std::vector<PageTable> tables = ExplainTables(*studied);
    return std::pair(tables[0].rows[0][6], tables[0].rows.back()[6]);
  };
  const auto streamed =
      reasons("0SWAP_OUT0.0 0SWAP_OUT_END0.0 0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.1 0B0\n");
  EXPECT_THAT(streamed.first, HasSubstr("leaves under its forward and comes in under its backward; "
                                        "copies alone"));
  EXPECT_THAT(streamed.second, HasSubstr("comes in under its backward; copies alone"));
  EXPECT_THAT(streamed.second, Not(HasSubstr("leaves under")));
  const auto whole = reasons(
      "0SWAP_OUT0.0 0SWAP_OUT0.1 0F0 0SWAP_OUT_END0.0 0SWAP_OUT_END0.1 0SWAP_IN0.1 0SWAP_IN0.0 "
      "0B0\n");
  EXPECT_THAT(whole.first, Not(HasSubstr(" under its ")));
}

// Worker 0 has nothing to do with microbatch 0 from 10 to 15 ms if everything is kept; a megabyte
// takes 1 ms to the host, and 1 ms back.
void SetFiveMilliseconds(StudiedPlan& studied) {
  constexpr int64_t kMillisecond = 1'000'000;
  const auto run = [&](ActionKind kind, int64_t begin, int64_t end) {
    return Interval{.action = {.kind = kind},
                    .begin = Nanos(begin * kMillisecond),
                    .end = Nanos(end * kMillisecond)};
  };
  studied.kept.workers[0] = {run(ActionKind::kForward, 0, 10), run(ActionKind::kBackward, 15, 35)};
  // As planned, waiting for copies makes it longer.
  studied.step->workers[0] = {run(ActionKind::kForward, 0, 10),
                              run(ActionKind::kBackward, 90, 110)};
  const PcieSwitch uplink{.to_host = BytesPerSecond(1'000'000'000),
                          .from_host = BytesPerSecond(1'000'000'000)};
  studied.problem.topology = WithHost(Topology{.devices = {{}, {}}}, 2, uplink);
}

PlannedGroup ActivationsOf(int layer, int64_t megabytes, Placement placement) {
  return {.group = {.kind = GroupKind::kActivations,
                    .layers = {layer, layer + 1},
                    .bytes = Bytes(megabytes * 1'000'000),
                    .recompute = Nanos(1'000'000)},
          .choice = {.placement = placement}};
}

TEST_F(ExplainTablesOf, EachWayIsHiddenOrSaysByHowMuchItIsExposed) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  SetFiveMilliseconds(*studied);
  studied->plan.memory.stages[0].groups = {ActivationsOf(0, 2, Placement::kRecompute),
                                           ActivationsOf(1, 4, Placement::kRecompute),
                                           ActivationsOf(2, 2, Placement::kHostSwap)};
  LetAllGo(*studied);
  studied->problem.capacity = {Bytes(5 << 20) + PeakOf(*studied->step, 0), Bytes(0)};
  const std::vector<ExplainedGroup> groups = ExplainPlan(*studied)[0].groups;
  ASSERT_EQ(groups.size(), 3u);
  ASSERT_EQ(groups[0].live, 2);
  EXPECT_EQ(groups[0].why,
            "computing them again takes 1.00 ms of a microbatch; else d2d_swap has no link, "
            "host_swap 4.00 ms hidden, keep up to 3.81 MiB (5.00 MiB free)");
  EXPECT_EQ(groups[1].why,
            "computing them again takes 1.00 ms of a microbatch; else d2d_swap has no link, "
            "host_swap 8.00 ms exposed by 3.00 ms, keep up to 7.63 MiB (5.00 MiB free)");
  EXPECT_EQ(
      groups[2].why,
      "copies alone take 4.00 ms, hidden: with everything kept they are 5.00 ms without a use; "
      "else recompute 1.00 ms exposed, d2d_swap has no link, keep up to 3.81 MiB (5.00 MiB "
      "free)");
  EXPECT_EQ(ExposedOf(groups[1], groups[1].each.host), Nanos(3'000'000));
  EXPECT_EQ(ExposedOf(groups[1], groups[1].each.nvme), std::nullopt);
}

// What is kept, and what steps on the host, could go other ways too.
TEST_F(ExplainTablesOf, EveryRowNamesTheOtherWays) {
  const PlanRequest request{.job = {.job = WriteFile("job.yaml", kJob)}, .strategy = "auto"};
  auto studied = StudyPlan(request);
  ASSERT_TRUE(studied.ok()) << studied.status();
  SetFiveMilliseconds(*studied);
  StagePlan& stage = studied->plan.memory.stages[0];
  stage.update = UpdatePlace::kHost;
  stage.groups = {
      ActivationsOf(0, 4, Placement::kKeep),
      {.group = {.kind = GroupKind::kOptimizerState, .layers = {0, 1}, .bytes = Bytes(2'000'000)},
       .choice = {.placement = Placement::kHostSwap}}};
  const std::vector<ExplainedGroup> groups = ExplainPlan(*studied)[0].groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].why, StartsWith("the worker has room for them: "));
  EXPECT_THAT(groups[0].why, EndsWith("; else recompute 1.00 ms exposed, d2d_swap has no link, "
                                      "host_swap 8.00 ms exposed by 3.00 ms"));
  EXPECT_THAT(groups[1].why,
              StartsWith("the host steps these layers: only gradients and parameters are copied; "
                         "else d2d_swap has no link, host_swap, steps on device 4.00 ms, keep up "
                         "to 1.91 MiB ("));
}

// What goes to a drive passes the uplink, the slower of both.
TEST(CopyCosts, ToADriveAreThoseOfTheSlowestOnTheWay) {
  PlanningProblem problem;
  const PcieSwitch uplink{.to_host = BytesPerSecond(1'000'000'000),
                          .from_host = BytesPerSecond(1'000'000'000),
                          .latency = Nanos(3)};
  problem.topology = WithHost(Topology{.devices = {{}}}, 1, uplink);
  EXPECT_EQ(CopyCosts(problem, DeviceId(0)).Nvme(Bytes(100)), std::nullopt);
  problem.topology.drives = {{.read = BytesPerSecond(2'000'000'000),
                              .write = BytesPerSecond(500'000'000),
                              .latency = Nanos(10)}};
  EXPECT_EQ(CopyCosts(problem, DeviceId(0)).Nvme(Bytes(100)), Nanos(200 + 13 + 100 + 13));
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
  studied->problem.topology = Topology();
  EXPECT_THAT(ExplainPlan(*studied)[0].groups[0].why,
              HasSubstr("d2d_swap takes links, with which auto does not plan here"));
  studied->problem.topology = UniformTopology(2, BytesPerSecond(1'000'000), Nanos(0));
  studied->problem.topology.links.clear();
  EXPECT_THAT(ExplainPlan(*studied)[0].groups[0].why, HasSubstr("d2d_swap has no link"));
}

}  // namespace
}  // namespace siphon
