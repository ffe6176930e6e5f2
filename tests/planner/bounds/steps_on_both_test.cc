// Optimizer steps on the host and on the device at the same time, as properties of the bounds.

#include <gtest/gtest.h>

#include <vector>

#include "planner/lowering/lower_memory_plan.h"
#include "planner/lowering/make_groups.h"
#include "planner/simulator/simulate.h"
#include "tests/planner/bounds/bounds_testing.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

constexpr int kSteps = kSanitized ? 20 : 60;

// Of some layers the host steps, of the others the device does meanwhile; nothing else leaves, and
// links take nearly no time.
RandomStep StepOnBoth(int seed) {
  Dice dice(seed);
  const int workers = dice.Roll(1, 3);
  RandomStep made;
  PlanningProblem& problem = made.problem;
  problem.schedule =
      AppendOptimizerStep(InsertCommunication(ScheduleOf("gpipe", workers, workers)).value(), {});
  for (int stage = 0; stage < workers; ++stage) {
    const int begin = static_cast<int>(problem.profile.layers.size());
    const int layers = dice.Roll(1, 4);
    problem.partition.stages.push_back({begin, begin + layers});
    for (int layer = 0; layer < layers; ++layer) {
      problem.profile.layers.push_back({.forward = Nanos(dice.Roll(1, 2000)),
                                        .input_backward = Nanos(dice.Roll(1, 2000)),
                                        .weight_backward = Nanos(dice.Roll(1, 2000)),
                                        .optimizer = Nanos(dice.Roll(0, 90'000)),
                                        .parameters = Bytes(dice.Roll(1, 9)),
                                        .gradients = Bytes(dice.Roll(1, 9)),
                                        .optimizer_state = Bytes(dice.Roll(1, 9'000)),
                                        .saved = {{"saved", Bytes(dice.Roll(1, 9'000))}}});
    }
  }
  problem.host_step = Nanos(dice.Roll(1, 90'000) * workers);
  problem.topology = UniformTopology(workers, kBytePerNano, Nanos(0));
  problem.topology =
      WithHost(problem.topology, 1,
               {.to_host = kBytePerNano * 1000, .from_host = kBytePerNano * 1000, .latency = {}});
  made.mapping = IdentityMapping(workers);
  MemoryPlan plan = KeepEverything(problem.profile, problem.partition);
  for (StagePlan& stage : plan.stages) {
    stage.update = UpdatePlace::kHost;
    for (auto& [group, choice] : stage.groups) {
      if (group.kind != GroupKind::kOptimizerState) continue;
      if (dice.Roll(0, 1) == 0) choice = {.placement = Placement::kHostSwap};
    }
  }
  const SwapTiming timing{.home_beside_host = true};
  const Schedule lowered =
      LowerMemoryPlan(problem.schedule, plan,
                      {.timing = std::vector<SwapTiming>(plan.stages.size(), timing)})
          .value();
  const SimulatedStep step = Simulate(SimulationOf(problem, made.mapping, plan, lowered)).value();
  problem.capacity = TotalPeaks(step);
  made.step_time = step.step_time;
  return made;
}

TEST(LowerBoundProperties, NoPlanIsFasterThanItsBoundWhereHostAndDevicesStepAtOnce) {
  for (int seed = 0; seed < kSteps; ++seed) ExpectAboveItsBounds(StepOnBoth(seed), seed);
}

}  // namespace
}  // namespace siphon
