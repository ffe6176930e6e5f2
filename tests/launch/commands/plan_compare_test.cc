#include "launch/commands/plan_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "planner/baselines/memory_baseline.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/launch/commands/plan_fixture.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(PlanCommand, ComparesAllStrategies) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job, "--set", Capacity(job, 80), "--compare"};
  const json plan = Json(flags, kExitDone);
  std::set<std::string> names;
  double before = 0;
  for (const json& row : plan["compare"]) {
    names.insert(row["strategy"]);
    if (row["fits"] != true) {
      EXPECT_THAT(row["remark"].get<std::string>(), HasSubstr("does not fit"));
      continue;
    }
    EXPECT_LE(before, row["step_seconds"]) << row;
    before = row["step_seconds"];
    if (row["strategy"] == "harmony") continue;  // another schedule
    EXPECT_GE(row["step_seconds"], plan["step_seconds"]) << row;
  }
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    EXPECT_TRUE(names.contains(std::string(strategy.name))) << strategy.name;
  }
  EXPECT_TRUE(names.contains("harmony"));
  EXPECT_THAT(Run(flags).out, HasSubstr("\nstrategies\nstrategy "));
}

// Data-parallel systems, where there is a server that they could run on.
TEST(ComparePlans, HasBaselinesOfAServer) {
  StudiedPlan planned;
  planned.job.topology.name = "a server";
  constexpr BytesPerSecond kRate(25'000'000'000);
  planned.problem.topology =
      WithHost(UniformTopology(4, kRate, Nanos(0)), 4, {.to_host = kRate, .from_host = kRate});
  planned.problem.profile.layers.resize(2);
  for (LayerProfile& layer : planned.problem.profile.layers) {
    layer.forward = Nanos(1'000);
    layer.input_backward = Nanos(1'000);
    layer.weight_backward = Nanos(1'000);
  }
  planned.problem.schedule.microbatches = 6;
  planned.problem.capacity.assign(4, Bytes(1'000'000));
  planned.tokens = 600;
  PlanRequest nowhere{.job = {.job = "/nowhere.yaml"}};
  std::vector<std::string> names;
  for (const ComparedPlan& plan : ComparePlans(nowhere, planned, [](absl::string_view) {})) {
    if (!IsBaseline(plan.name)) continue;
    names.push_back(plan.name);
    if (plan.name != "lms") continue;
    // Two microbatches on each of four devices, for six.
    ASSERT_TRUE(plan.step_time.has_value()) << plan.remark;
    EXPECT_EQ(*plan.step_time, Nanos(2 * 2 * 3'000 * 6 / 8));
    EXPECT_DOUBLE_EQ(plan.tokens_per_second, 600 * 1e9 / 9'000);
  }
  EXPECT_EQ(names.size(), MemoryBaselines().size());
}

TEST_F(PlanCommand, NamesWhatABaselineIs) {
  const std::string job = Write(kSmallJob);
  const CommandEnd end = Run({job, "--strategy", "zero_offload"});
  EXPECT_EQ(end.code, kExitBadInput);
  EXPECT_THAT(end.err, HasSubstr("no memory strategy is called 'zero_offload'; there are keep"));
  EXPECT_THAT(end.err, HasSubstr("zero_offload is one of the systems that siphon plan --compare "
                                 "and --published figure8 show"));
}

}  // namespace
}  // namespace siphon
