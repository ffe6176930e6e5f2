#include "pipeline/synthetic/shrink_problem.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "pipeline/schedules/build_schedule.h"
#include "planner/lower_schedule.h"
#include "planner/lowering/make_groups.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/pipeline/synthetic/synthetic_testing.h"

namespace siphon {
namespace {

// Four stages on two switches, of sizes that real models have.
PlanningProblem LargeProblem() {
  constexpr int64_t kMillion = 1'000'000;
  PlanningProblem problem;
  problem.partition = EvenPartition(4, 3);
  problem.profile = DicedProfile(12, Bytes(17), 5);
  for (LayerProfile& layer : problem.profile.layers) {
    layer.forward = layer.forward * 100'000;
    layer.input_backward = layer.input_backward * 100'000;
    layer.weight_backward = layer.weight_backward * 100'000;
    layer.whole_backward = Nanos(0);
    layer.optimizer = layer.optimizer * 100'000;
    for (Bytes* bytes :
         {&layer.parameters, &layer.gradients, &layer.optimizer_state, &layer.boundary,
          &layer.forward_workspace, &layer.backward_workspace, &layer.kept_for_weights,
          &layer.saved_input, &layer.saved_output, &layer.saved[0].bytes, &layer.saved[1].bytes}) {
      *bytes = *bytes * kMillion;
    }
  }
  const Schedule schedule = BuildSchedule("1f1b", {.workers = 4, .microbatches = 8}).value();
  problem.schedule = AppendOptimizerStep(InsertCommunication(schedule).value(), {});
  const PcieSwitch uplink{.to_host = BytesPerSecond(12'000 * kMillion),
                          .from_host = BytesPerSecond(11'000 * kMillion),
                          .to_host_both = BytesPerSecond(10'000 * kMillion),
                          .from_host_both = BytesPerSecond(9'000 * kMillion),
                          .latency = Nanos(10'000)};
  problem.topology =
      WithHost(UniformTopology(4, BytesPerSecond(24'000 * kMillion), Nanos(8'000)), 2, uplink);
  problem.topology.host_memory = Bytes(64'000 * kMillion);
  problem.capacity.assign(4, Bytes(10'000 * kMillion));
  return problem;
}

TEST(ShrinkProblem, DividesSizesAndRatesAndStretchesTimes) {
  PlanningProblem problem = LargeProblem();
  problem.profile.layers[0].forward = Nanos(2'001);
  problem.profile.layers[0].parameters = Bytes(10'001);
  problem.profile.layers[0].forward_workspace = Bytes(0);
  problem.topology.devices[0].memory = Bytes(32'999);
  problem.host_step = Nanos(7);
  const PlanningProblem small = ShrinkProblem(problem, {.bytes = 1000, .time = 5, .time_parts = 2});
  EXPECT_EQ(small.profile.layers[0].forward, Nanos(5'002));
  EXPECT_EQ(small.profile.layers[0].parameters, Bytes(11));
  EXPECT_EQ(small.profile.layers[0].forward_workspace, Bytes(0));
  EXPECT_EQ(small.topology.devices[0].memory, Bytes(32));
  EXPECT_EQ(small.topology.devices[1].memory, Bytes(0));  // not known
  EXPECT_EQ(small.topology.links[0].rate, BytesPerSecond(9'600'000));
  EXPECT_EQ(small.topology.links[0].latency, Nanos(20'000));
  EXPECT_EQ(small.topology.switches[1].from_host_both, BytesPerSecond(3'600'000));
  EXPECT_EQ(small.topology.host_memory, Bytes(64'000'000));
  EXPECT_EQ(small.capacity[3], Bytes(10'000'000));
  EXPECT_EQ(small.host_step, Nanos(17));
  const PlanningProblem same = ShrinkProblem(problem, {.bytes = 1});
  EXPECT_EQ(same.profile, problem.profile);
  EXPECT_EQ(same.topology, problem.topology);
}

// Whatever is planned takes the same part of the time in small.
TEST(ShrinkProblem, KeepsTheProportionsOfSteps) {
  const PlanningProblem problem = LargeProblem();
  for (const char* name : {"keep", "recompute", "host_swap", "d2d_swap"}) {
    SCOPED_TRACE(name);
    PlanningProblem asked = problem;
    if (name == std::string("keep")) asked.capacity.clear();
    asked.mapping = IdentityMapping(4);
    const MemoryStrategy strategy = FindMemoryStrategy(name).value();
    const auto large = strategy.plan(asked);
    ASSERT_TRUE(large.ok()) << large.status();
    for (const MiniatureScale& scale :
         {MiniatureScale{.bytes = 1024}, MiniatureScale{.bytes = 64, .time = 7, .time_parts = 3}}) {
      PlanningProblem small = ShrinkProblem(asked, scale);
      small.capacity.clear();  // the plan is the large one's
      MemoryPlan memory = large->memory;
      for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
        for (auto& [group, choice] : memory.stages[stage].groups) {
          const StageRange& layers = small.partition.stages[stage];
          group = GroupOf(small.profile, layers, group.kind, group.layers);
          std::vector<LenderWeight> weights;
          for (const Stripe& stripe : choice.stripes) {
            weights.push_back({stripe.lender, stripe.bytes.value});
          }
          if (!weights.empty()) choice.stripes = CutStripes(group.bytes, weights, Bytes(1));
        }
      }
      const auto step =
          Simulate(SimulationOf(small, large->mapping, std::move(memory), large->schedule));
      ASSERT_TRUE(step.ok()) << step.status();
      const double expected = static_cast<double>(large->simulated.step_time.value) *
                              static_cast<double>(scale.time) /
                              static_cast<double>(scale.time_parts);
      EXPECT_NEAR(static_cast<double>(step->step_time.value) / expected, 1, 1e-4);
    }
  }
}

}  // namespace
}  // namespace siphon
