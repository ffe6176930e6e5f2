#include "planner/bounds/lower_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "planner/bounds/linear/solve_linear_program.h"
#include "planner/simulator/simulate.h"
#include "planner/strategies/strategies.h"
#include "tests/planner/bounds/bounds_testing.h"

namespace siphon {
namespace {

// One worker, two microbatches, room for the activations of one: F0 F1 [B0 B1, 60 us of work.
PlanningProblem OneWorker() {
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 1, 2), PlainLayer(), Bytes(100'000));
  problem.topology = Islands(1);
  return problem;
}

PcieSwitch UplinkOf(std::vector<DeviceId> devices, BytesPerSecond rate) {
  return {.devices = std::move(devices), .to_host = rate, .from_host = rate};
}

// The part of the linear program, which is rounded down by a millionth and a nanosecond at most.
void ExpectProgram(const LowerBound& bound, Nanos exact, const std::string& reason) {
  if (!HasLinearSolver()) return;
  const BoundPart& part = bound.parts.back();
  EXPECT_EQ(part.reason, "linear program: " + reason);
  EXPECT_LE(*part.time, exact);
  EXPECT_GE(part.time->value, exact.value - exact.value / 1'000'000 - 1);
}

TEST(LowerBound, OfAStepThatFitsIsItsSimulatedTime) {
  PlanningProblem problem = ProblemOf(ScheduleOf("1f1b", 4, 8), PlainLayer(), Bytes(400'000));
  const LowerBound bound = BoundOf(problem);
  EXPECT_EQ(bound.step_time, Nanos((8 + 3) * 30'000));
  EXPECT_EQ(bound.reason, "the schedule's longest path");
  EXPECT_EQ(bound.parts.size(), 1u);
}

TEST(LowerBound, CountsRecomputationWhereNothingCanLeave) {
  const LowerBound bound = BoundOf(OneWorker());
  EXPECT_EQ(PartOf(bound, "memory of worker 0"), Nanos(70'000));
  ExpectProgram(bound, Nanos(70'000), "recomputation on worker 0");
}

TEST(LowerBound, SharesTheWorkOutBetweenUplinkAndRecomputation) {
  PlanningProblem problem = OneWorker();
  problem.topology.switches = {UplinkOf({DeviceId(0)}, kBytePerNano)};
  const LowerBound bound = BoundOf(problem);
  // By counting: T ns carry T bytes, (T - 60,000) ns compute ten bytes each: 11 T = 700,000.
  EXPECT_EQ(PartOf(bound, "memory of worker 0"), Nanos(63'637));
  // With the order of things: 20,000 bytes leave while F0 and F1 run; 80,000 are computed again.
  ExpectProgram(bound, Nanos(68'000), "recomputation on worker 0");
}

TEST(LowerBound, TakesBothDirectionsOfAnUplinkAtTheirSlowerRates) {
  // Windows at B0 and B2, each 100,000 bytes too full; F 100 us, or one ns a byte computed again.
  PlanningProblem problem = ProblemOf(ParseSchedule("0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3\n").value(),
                                      PlainLayer(), Bytes(100'000));
  problem.profile.layers[0].forward = Nanos(100'000);
  problem.topology = Islands(1);
  PcieSwitch uplink = UplinkOf({DeviceId(0)}, BytesPerSecond(500'000'000));
  problem.topology.switches = {uplink};
  // F0 F1 200 us, B0 to F3 240 us: all of the first window goes and comes, hidden. B2 B3 40 us:
  // x bytes come back in 2 x ns, and 100,000 - x are computed again: 93,333 ns.
  ExpectProgram(BoundOf(problem), Nanos(533'333), "recomputation on worker 0");
  uplink.to_host_both = uplink.from_host_both = BytesPerSecond(250'000'000);
  problem.topology.switches = {uplink};
  // In the middle y bytes come back, x leave: 2 (x + y) ns, or 240,000 + 100,000 - y of work: best
  // with x = 46,667, y = 82,222: 257,778 ns.
  ExpectProgram(BoundOf(problem), Nanos(551'111), "recomputation on worker 0");
}

TEST(LowerBound, LetsWorkersShareUplinks) {
  // gpipe, F 10 us, B 20 us: the workers' own paths take 120 and 150 us; each has 200,000 bytes too
  // many. T ns carry T bytes and, beyond its own path, a worker computes ten bytes a ns again. When
  // worker 1 is through, 11 T = 1,700,000, worker 0 has long left the uplink to it.
  PlanningProblem problem = ProblemOf(ScheduleOf("gpipe", 2, 4), PlainLayer(), Bytes(200'000));
  problem.topology = Islands(2);
  problem.topology.switches = {UplinkOf({DeviceId(0), DeviceId(1)}, kBytePerNano)};
  const LowerBound bound = BoundOf(problem);
  EXPECT_EQ(PartOf(bound, "memory of worker 0"), Nanos(127'273));
  EXPECT_EQ(PartOf(bound, "memory of worker 1"), Nanos(154'546));
  EXPECT_EQ(PartOf(bound, "the uplinks of all switches"), Nanos(154'546));
  problem.mapping = IdentityMapping(2);
  EXPECT_EQ(PartOf(BoundOf(problem), "the uplink of switch 0"), Nanos(154'546));
  // Behind switches of their own they share nothing.
  problem.topology.switches = {UplinkOf({DeviceId(0)}, kBytePerNano),
                               UplinkOf({DeviceId(1)}, kBytePerNano)};
  for (const BoundPart& part : BoundOf(problem).parts) {
    EXPECT_EQ(part.reason.find("of switch"), std::string::npos) << part.reason;
  }
}

TEST(LowerBound, CountsOnlyWhatLendersHaveToSpare) {
  // 100,000 bytes too many; 30,000 fit on a device without a worker, the rest is computed again.
  PlanningProblem problem = OneWorker();
  problem.topology = UniformTopology(2, BytesPerSecond(1'000'000'000'000), Nanos(0));
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(30'000);
  ExpectProgram(BoundOf(problem), Nanos(67'000), "recomputation on worker 0");
  for (TopologyDevice& device : problem.topology.devices) device.memory = Bytes(100'000);
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(60'000));
}

TEST(LowerBound, LetsTheHostStepWhatItHolds) {
  // 100,000 bytes of optimizer state too many; parameters and gradients are 10,000 each. Away with
  // the host, 10,000 bytes go out and 10,000 come in, in 60 us of work: for nothing. At 0.1 bytes a
  // ns best is all of the state, so that 10,000 bytes of new parameters come in: x bytes of
  // parameters away instead of x of the state would come in for the forward and for the backward,
  // where the host's step moves x / 10 less for the state and x less for what it has already.
  PlanningProblem problem = OneWorker();
  LayerProfile& layer = problem.profile.layers[0];
  layer.parameters = layer.gradients = Bytes(10'000);
  layer.optimizer_state = Bytes(100'000);
  layer.saved.clear();
  problem.host_step = Nanos(1);
  problem.capacity = {Bytes(20'000)};
  problem.topology.switches = {UplinkOf({DeviceId(0)}, kBytePerNano)};
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(60'000));
  problem.topology.switches = {UplinkOf({DeviceId(0)}, BytesPerSecond(100'000'000))};
  const LowerBound bound = BoundOf(problem);
  // By counting, a byte of parameters that comes in may stand for itself and ten of the state.
  EXPECT_EQ(PartOf(bound, "memory of worker 0"), Nanos(83'340));
  ExpectProgram(bound, Nanos(100'000), "the uplink of worker 0");
  // Where the host's time is not known it computes no steps, and all of it moves.
  problem.host_step = Nanos(0);
  ExpectProgram(BoundOf(problem), Nanos(1'000'000), "the uplink of worker 0");
}

// Two layers, of which the device takes 90 us and 30 us to step, the host 30 us each. The first on
// the host and the second on the device take 30 us together, where all on the host take 60.
TEST(LowerBound, LetsHostAndDeviceStepAtOnce) {
  PlanningProblem problem = ProblemOf(AppendOptimizerStep(ScheduleOf("gpipe", 1, 2), {}),
                                      PlainLayer(), Bytes(0), /*layers_per_stage=*/2);
  for (LayerProfile& layer : problem.profile.layers) layer.optimizer_state = Bytes(10);
  problem.profile.layers[0].optimizer = Nanos(90'000);
  problem.profile.layers[1].optimizer = Nanos(30'000);
  problem.host_step = Nanos(60'000);
  problem.topology = Islands(1);
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000 + 120'000)) << "no way to the host";
  problem.topology.switches = {UplinkOf({DeviceId(0)}, kBytePerNano)};
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000 + 30'000));
  // A quarter of the second one goes to the host, too: 30 + 15 us there, 45 us on the device.
  problem.profile.layers[0].optimizer = Nanos(45'000);
  problem.profile.layers[1].optimizer = Nanos(60'000);
  problem.host_step = Nanos(90'000);
  problem.profile.layers[1].optimizer_state = Bytes(20);
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000 + 45'000));
}

// F0 I0 F1 I1 W0 W1 of two layers, 60,000 bytes each, all of which the Ws need: 240,000 when I1
// ends, 40,000 too many, though I1 may begin with its first layer dropped. What the Ws need cannot
// be away, so 40,000 of the optimizer state are: home between steps, they leave behind F0 and come
// back while the Ws run. At 1 byte in 5 ns that takes 200 us each way.
TEST(LowerBound, LetsStateLeaveForWhatIsQueued) {
  PlanningProblem problem = QueuedWeightBackwards();
  problem.topology = WithHost(Islands(1), 1, {.to_host = kBytePerNano, .from_host = kBytePerNano});
  const std::vector<WorkerMemory> memory = MemoryOfWorkers(problem);
  EXPECT_EQ(memory[0].fixed_excess, Bytes(40'000));
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000));
  problem.topology.switches[0].from_host = BytesPerSecond(200'000'000);
  EXPECT_GE(BoundOf(problem).step_time, Nanos(200'000));
  problem.capacity = {Bytes(340'000)};
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(120'000));
}

// Two layers with 340,000 bytes of optimizer state together. In 310,000 bytes of memory 30,000 are
// away between steps: they come in and leave again behind all 60 us of work. Where there is room
// for all of it then, what makes way for 20,000 bytes of activations moves while there is work.
TEST(LowerBound, LetsStateBeHomeBetweenStepsWhereThereIsRoom) {
  LayerProfile layer = PlainLayer();
  layer.saved = {{"saved", Bytes(10'000)}};
  layer.optimizer_state = Bytes(170'000);
  PlanningProblem problem = ProblemOf(AppendOptimizerStep(ScheduleOf("gpipe", 1, 1), {}), layer,
                                      Bytes(310'000), /*layers_per_stage=*/2);
  problem.topology = WithHost(Islands(1), 1, {.to_host = kBytePerNano, .from_host = kBytePerNano});
  ExpectProgram(BoundOf(problem), Nanos(90'000), "the optimizer step of worker 0");
  problem.capacity = {Bytes(340'000)};
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(60'000));
}

// Eight layers with 100,000 bytes of parameters and as much saved, 300,000 too many for their one
// backward: over a fast uplink weights that come in layer by layer make the room, and nothing is
// computed again.
TEST(LowerBound, LetsWeightsComeInLayerByLayer) {
  LayerProfile layer = PlainLayer();
  layer.parameters = Bytes(100'000);
  PlanningProblem problem = ProblemOf(AppendOptimizerStep(ScheduleOf("gpipe", 1, 1), {}), layer,
                                      Bytes(1'300'000), /*layers_per_stage=*/8);
  const BytesPerSecond fast = kBytePerNano * 1000;
  problem.topology = WithHost(Islands(1), 1, {.to_host = fast, .from_host = fast});
  const absl::StatusOr<PlannedStep> plan = PlanWeightOffloading(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LT(plan->simulated.step_time, Nanos(250'000));
  const LowerBound bound = BoundOf(problem);
  EXPECT_EQ(bound.cannot_fit, std::nullopt);
  EXPECT_GE(bound.step_time, Nanos(240'000));
  EXPECT_LE(bound.step_time, plan->simulated.step_time);
}

// PipeDream on four workers, 100,000 bytes of weights a layer. Its first worker would keep four
// versions of two layers, but the older ones may be away: they count for nothing that must be
// there.
TEST(LowerBound, LetsStashedWeightVersionsLeave) {
  LayerProfile layer = PlainLayer();
  layer.parameters = Bytes(100'000);
  layer.saved = {{"saved", Bytes(1'000)}};
  PlanningProblem problem = ProblemOf(ScheduleOf("pipedream", 4, 12), layer, Bytes(0),
                                      /*layers_per_stage=*/2);
  const BytesPerSecond fast = kBytePerNano * 100;
  problem.topology =
      WithHost(NvswitchTopology(4, fast, Nanos(0)), 4, {.to_host = fast, .from_host = fast});
  const Nanos kept = BoundOf(problem).step_time;
  for (const int64_t capacity : {850'000, 700'000, 600'000, 450'000}) {
    problem.capacity.assign(4, Bytes(capacity));
    const absl::StatusOr<PlannedStep> plan = PlanHostSwap(problem);
    ASSERT_TRUE(plan.ok()) << capacity << ": " << plan.status();
    const LowerBound bound = BoundOf(problem);
    EXPECT_EQ(bound.cannot_fit, std::nullopt) << capacity;
    EXPECT_GE(bound.step_time, kept) << capacity;
    EXPECT_LE(bound.step_time, plan->simulated.step_time) << capacity;
  }
}

TEST(LowerBound, SaysThatNothingFits) {
  PlanningProblem problem = OneWorker();
  problem.profile.layers[0].parameters = Bytes(200'000);
  const LowerBound bound = BoundOf(problem);
  EXPECT_EQ(bound.cannot_fit, "memory of worker 0");
  EXPECT_EQ(bound.step_time, Nanos(60'000));
  problem.topology.switches = {UplinkOf({DeviceId(0)}, kBytePerNano)};
  EXPECT_EQ(BoundOf(problem).cannot_fit, std::nullopt);
}

TEST(LowerBound, CountsTheCoresThatWorkersShare) {
  PlanningProblem problem = ProblemOf(ScheduleOf("1f1b", 4, 8), PlainLayer(), Bytes(0));
  problem.cores = {1000, 1600};
  // 4 x 8 x 30 us of work, 1.6 of it in each.
  EXPECT_EQ(BoundOf(problem).step_time, Nanos(600'000));
  EXPECT_EQ(BoundOf(problem).reason, "the cores that all workers share");
}

}  // namespace
}  // namespace siphon
