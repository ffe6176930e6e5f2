#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

const GroupChoice kHost{.placement = Placement::kHostSwap};

PlannedGroup Group(GroupKind kind, StageRange layers, int64_t bytes, const GroupChoice& choice) {
  return {{.kind = kind, .layers = layers, .bytes = Bytes(bytes)}, choice};
}

// One worker with one stage of two layers, each 5 ns forward, 5 for the input's gradient and 5 for
// the weights', 3 and 1 ns of the optimizer step of 4; 50 bytes of parameters, 30 of gradients, 100
// of optimizer state, no activations. The host takes 10 bytes a nanosecond, each way.
SimulationInput TwoLayers(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  StageCost cost = TenNanos();
  cost.parameters = Bytes(50);
  cost.gradients = Bytes(30);
  cost.optimizer_state = Bytes(100);
  SimulationInput input = EqualStages(ParsedSchedule(schedule), cost);
  LayerCost layer{.forward = Nanos(5), .input_backward = Nanos(5), .weight_backward = Nanos(5)};
  layer.optimizer = Nanos(3);
  input.layers.assign(input.stages.size(), {layer, layer});
  for (std::vector<LayerCost>& stage : input.layers) stage[1].optimizer = Nanos(1);
  input.transport.host_rate = BytesPerSecond(10 * kGigabyte);
  input.memory.stages.resize(input.stages.size());
  input.memory.stages[0].groups = std::move(groups);
  return input;
}

TEST(SimulatedStaticGroups, ParametersComeInForEachUseAndGoOutWhenTheyHaveChanged) {
  const SimulatedStep step = Simulated(
      TwoLayers("0SWAP_IN.0 0F0 0DROP.0 0SWAP_IN.0 0B0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n",
                {Group(GroupKind::kParameters, {0, 1}, 40, kHost)}));
  // Forward waits at once, backward comes to the layer when the copy is through.
  EXPECT_EQ(CopiesText(step),
            "0SWAP_IN.0 [0,4) device 0, copies from host\n"
            "0SWAP_IN.0 [14,18) device 0, copies from host\n"
            "0SWAP_OUT.0 [38,42) device 0, copies to host\n");
  EXPECT_EQ(TimelineText(step),
            "wait 0F0 [0,4) worker 0\n"
            "0F0 [4,14) worker 0\n"
            "0B0 [14,34) worker 0\n"
            "0STEP [34,38) worker 0\n"
            "wait 0SWAP_OUT_END.0 [38,42) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50, gradients 30, optimizer 100\n"
            "14: parameters 50, gradients 30, optimizer 100\n"
            "42: parameters 10, gradients 30, optimizer 100\n");
  EXPECT_EQ(step.host_peak, Bytes(40));
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(8));
}

TEST(SimulatedStaticGroups, AForwardWaitsAtTheFirstLayerAndABackwardAtTheLast) {
  const SimulatedStep step =
      Simulated(TwoLayers("0SWAP_IN.0 0F0 0DROP.0 0SWAP_IN.0 0B0 0DROP.0\n",
                          {Group(GroupKind::kParameters, {1, 2}, 50, kHost)}));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "wait 0B0 [10,15) worker 0\n"
            "0B0 [15,35) worker 0\n");
}

TEST(SimulatedStaticGroups, OnlyTheWeightsGradientNeedsTheGradients) {
  const SimulatedStep step =
      Simulated(TwoLayers("0F0 0SWAP_IN.0 0I0 0W0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n",
                          {Group(GroupKind::kGradients, {0, 2}, 30, kHost)}));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0I0 [10,20) worker 0\n"
            "0W0 [20,30) worker 0\n"
            "0STEP [30,34) worker 0\n"
            "wait 0SWAP_OUT_END.0 [34,37) worker 0\n");
  SimulationInput slow = TwoLayers("0F0 0SWAP_IN.0 0I0 0W0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n",
                                   {Group(GroupKind::kGradients, {0, 1}, 30, kHost)});
  slow.transport.host_rate = BytesPerSecond(kGigabyte);  // comes in from 10 to 40
  EXPECT_THAT(TimelineText(Simulated(slow)), testing::HasSubstr("0I0 [10,20) worker 0\n"
                                                                "0W0 [20,25) worker 0\n"
                                                                "wait 0W0 [25,40) worker 0\n"
                                                                "0W0 [40,45) worker 0\n"));
}

TEST(SimulatedStaticGroups, OptimizerStateStepsGroupByGroup) {
  const SimulatedStep step = Simulated(TwoLayers(
      "0F0 0B0 0SWAP_IN.0 0STEP.0 0SWAP_OUT.0 0SWAP_IN.1 0SWAP_OUT_END.0 0STEP.1 0SWAP_OUT.1 "
      "0SWAP_OUT_END.1 0STEP\n",
      {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost),
       Group(GroupKind::kOptimizerState, {1, 2}, 40, kHost)}));
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,30) worker 0\n"
            "wait 0STEP.0 [30,36) worker 0\n"
            "0STEP.0 [36,39) worker 0\n"
            "wait 0SWAP_OUT_END.0 [39,45) worker 0\n"
            "0STEP.1 [45,46) worker 0\n"
            "wait 0SWAP_OUT_END.1 [46,50) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 50, gradients 30\n"
            "30: parameters 50, gradients 30, optimizer 60\n"
            "39: parameters 50, gradients 30, optimizer 100\n"
            "45: parameters 50, gradients 30, optimizer 40\n"
            "50: parameters 50, gradients 30\n");
}

// Home between steps: the copy out runs while the first forward does, the copy in while the last
// backward does, so that the step takes what it takes without any swap.
TEST(SimulatedStaticGroups, OptimizerStateThatIsHomeBetweenStepsLeavesBehindForwards) {
  const SimulatedStep step =
      Simulated(TwoLayers("0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0SWAP_IN.0 0B0 0STEP\n",
                          {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost)}));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_OUT.0 [0,6) device 0, copies to host\n"
            "0SWAP_IN.0 [10,16) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,30) worker 0\n"
            "0STEP [30,34) worker 0\n");
  EXPECT_EQ(step.step_time, Nanos(34));
  EXPECT_EQ(step.host_peak, Bytes(60));
}

// What it saves: a microbatch's 70 bytes are there when 60 of state are not. The step before had
// the state there, so that it counts at the begin.
TEST(SimulatedStaticGroups, WhatIsHomeBetweenStepsCountsAtBothEnds) {
  const auto with = [](absl::string_view program, int64_t capacity) {
    SimulationInput input =
        TwoLayers(program, {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost)});
    input.stages[0].stash = Bytes(70);
    for (LayerCost& layer : input.layers[0]) layer.stash = Bytes(35);
    input.capacity = {Bytes(capacity)};
    return input;
  };
  constexpr char kHome[] = "0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0F1 0B1 0B0 0SWAP_IN.0 0STEP\n";
  const SimulatedStep home = Simulated(with(kHome, 260));
  EXPECT_EQ(CurveText(home.memory[0]),
            "0: parameters 50, gradients 30, optimizer 100, activations 35\n"
            "5: parameters 50, gradients 30, optimizer 100, activations 70\n"
            "10: parameters 50, gradients 30, optimizer 40, activations 105\n"
            "15: parameters 50, gradients 30, optimizer 40, activations 140\n"
            "30: parameters 50, gradients 30, optimizer 40, activations 105\n"
            "40: parameters 50, gradients 30, optimizer 40, activations 70\n"
            "50: parameters 50, gradients 30, optimizer 40, activations 35\n"
            "60: parameters 50, gradients 30, optimizer 100\n");
  EXPECT_EQ(Total(home.peak[0]), Bytes(260));
  EXPECT_EQ(home.step_time, Nanos(70));  // the copy in is waited for, the one out is not
  EXPECT_FALSE(Simulate(with(kHome, 259)).ok());
  // Away between steps, it leaves behind the STEP.
  constexpr char kAway[] = "0F0 0F1 0B1 0B0 0SWAP_IN.0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n";
  EXPECT_EQ(Simulated(with(kAway, 260)).step_time, Nanos(76));
  // Both ends need room for all of it.
  const absl::Status begin = Simulate(with(kHome, 179)).status();
  EXPECT_THAT(begin.message(), testing::HasSubstr("worker 0 holds 180 B before its first action"));
}

// A lender keeps the place all the time.
TEST(SimulatedStaticGroups, ThePlaceOfWhatIsHomeBetweenStepsIsTaken) {
  const GroupChoice lent{.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(60)}}};
  SimulationInput input =
      TwoLayers("0SWAP_OUT.0 0F0 0SWAP_OUT_END.0 0SWAP_IN.0 0B0 0STEP\n1F0 1B0\n",
                {Group(GroupKind::kOptimizerState, {0, 1}, 60, lent)});
  input.topology = UniformTopology(2, BytesPerSecond(kGigabyte), Nanos(0));
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(Total(step.peak[0]), Bytes(180));
  EXPECT_EQ(Total(step.peak[1]), Bytes(240));
}

TEST(SimulatedStaticGroups, APlainStepTakesTheLayersThatHaveNone) {
  const SimulatedStep step =
      Simulated(TwoLayers("0F0 0B0 0SWAP_IN.0 0STEP.0 0SWAP_OUT.0 0SWAP_OUT_END.0 0STEP\n",
                          {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost)}));
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("0STEP.0 [36,39) worker 0\n"
                                                     "wait 0SWAP_OUT_END.0 [39,45) worker 0\n"
                                                     "0STEP [45,46) worker 0\n"));
}

TEST(SimulatedStaticGroups, WhatIsComputedAgainNeedsItsParameters) {
  SimulationInput input =
      TwoLayers("0SWAP_IN.0 0DROP0.1 0F0 0DROP.0 0SWAP_IN.0 0B0 0DROP.0\n",
                {Group(GroupKind::kParameters, {0, 1}, 50, kHost),
                 Group(GroupKind::kActivations, {0, 2}, 0, {.placement = Placement::kRecompute})});
  input.memory.stages[0].groups[1].group.recompute = Nanos(10);
  // The group begins with the first layer, whose parameters come in from 15 to 20.
  EXPECT_EQ(TimelineText(Simulated(input)),
            "wait 0F0 [0,5) worker 0\n"
            "0F0 [5,15) worker 0\n"
            "wait 0B0 [15,20) worker 0\n"
            "0RECOMPUTE0.1 [20,30) worker 0\n"
            "0B0 [30,50) worker 0\n");
}

TEST(SimulatedStaticGroups, WhatIsAwayCountsWhereItIsFromTheBeginning) {
  const GroupChoice lent{.placement = Placement::kPeerSwap,
                         .stripes = {{DeviceId(1), Bytes(10)}, {DeviceId(2), Bytes(30)}}};
  SimulationInput input = TwoLayers("0SWAP_IN.0 0F0 0B0 0DROP.0\n1F0 1B0\n",
                                    {Group(GroupKind::kParameters, {0, 1}, 40, lent)});
  input.topology = UniformTopology(3, BytesPerSecond(kGigabyte), Nanos(0));
  input.capacity = {Bytes(180), Bytes(190)};
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(step.memory[0].back().bytes[MemoryKind::kParameters], Bytes(10));
  EXPECT_EQ(CurveText(step.memory[1]), "0: parameters 50, gradients 30, optimizer 100, lent 10\n");
  EXPECT_EQ(step.other_peaks, (std::vector<HolderPeak>{{"device 2", Bytes(30)}}));
  input.topology.devices[2].memory = Bytes(29);
  EXPECT_EQ(std::string(Simulate(input).status().message()),
            "device 2 holds 30 B before the first action (lent 30 B); its capacity is 29 B, 1 B "
            "less");
  input.topology.devices[2].memory = Bytes(30);
  input.capacity[1] = Bytes(189);
  EXPECT_EQ(std::string(Simulate(input).status().message()),
            "worker 1 holds 190 B before its first action (parameters 50 B, gradients 30 B, "
            "optimizer 100 B, lent 10 B); its capacity is 189 B, 1 B less");
}

SimulationInput StepOnHost(absl::string_view schedule, std::vector<PlannedGroup> groups) {
  SimulationInput input = TwoLayers(schedule, std::move(groups));
  for (StagePlan& stage : input.memory.stages) stage.update = UpdatePlace::kHost;
  input.host_step.assign(input.stages.size(), Nanos(8));
  return input;
}

TEST(SimulatedStaticGroups, AStepOnTheHostTakesGradientsOutAndBringsParametersIn) {
  const SimulatedStep step = Simulated(StepOnHost("0F0 0B0 0STEP\n", {}));
  EXPECT_EQ(CopiesText(step),
            "0STEP [30,33) device 0, copies to host\n"
            "0STEP [41,46) device 0, new parameters from host\n"
            "0STEP [33,41) optimizer steps on the host\n");
  EXPECT_EQ(TimelineText(step),
            "0F0 [0,10) worker 0\n"
            "0B0 [10,30) worker 0\n"
            "wait 0STEP [30,46) worker 0\n");
  EXPECT_EQ(WaitForSwaps(step, 0), Nanos(16));
  EXPECT_EQ(CurveText(step.memory[0]), "0: parameters 50, gradients 30\n");
  EXPECT_EQ(step.host_peak, Bytes(130));  // optimizer state, and the gradients until they are used
}

// They stay on the device whatever moves, and are in nobody's `parameters` and `gradients`.
TEST(SimulatedStaticGroups, AStepOnTheHostCopiesWhatLayersShareToo) {
  SimulationInput input = StepOnHost("0SWAP_IN.0 0F0 0B0 0DROP.0 0STEP\n",
                                     {Group(GroupKind::kParameters, {0, 2}, 50, kHost)});
  input.stages[0].shared_gradients = Bytes(40);
  input.stages[0].shared_parameters = Bytes(20);
  EXPECT_EQ(CopiesText(Simulated(input)),
            "0SWAP_IN.0 [0,5) device 0, copies from host\n"
            "0STEP [35,42) device 0, copies to host\n"
            "0STEP [50,52) device 0, new parameters from host\n"
            "0STEP [42,50) optimizer steps on the host\n");
}

TEST(SimulatedStaticGroups, StepsOnTheHostOverlapWithCopiesGroupByGroup) {
  // 60 and 40 of 100 bytes of state: 18 and 12 of gradients, 4.8 and 3.2 ns (rounded down, the last
  // takes the rest), 30 and 20 of parameters.
  const SimulatedStep step = Simulated(StepOnHost(
      "0F0 0B0 0STEP.0 0STEP.1\n", {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost),
                                    Group(GroupKind::kOptimizerState, {1, 2}, 40, kHost)}));
  EXPECT_EQ(CopiesText(step),
            "0STEP.0 [30,32) device 0, copies to host\n"
            "0STEP.1 [32,34) device 0, copies to host\n"
            "0STEP.0 [36,39) device 0, new parameters from host\n"
            "0STEP.1 [40,42) device 0, new parameters from host\n"
            "0STEP.0 [32,36) optimizer steps on the host\n"
            "0STEP.1 [36,40) optimizer steps on the host\n");
}

TEST(SimulatedStaticGroups, SomeLayersStepOnTheHostAndOthersOnTheDevice) {
  SimulationInput input = StepOnHost("0F0 0B0 0STEP.0 0STEP.1 0STEP\n",
                                     {Group(GroupKind::kOptimizerState, {0, 1}, 60, kHost),
                                      Group(GroupKind::kOptimizerState, {1, 2}, 40, {})});
  for (LayerCost& layer : input.layers[0]) layer.optimizer = Nanos(7);
  input.stages[0].step = Nanos(14);
  const SimulatedStep step = Simulated(input);
  // 18 bytes of gradients, 4.8 ns of the host and 30 bytes of parameters; beside it the device.
  const std::string copies = CopiesText(step);
  EXPECT_EQ(copies.substr(0, copies.find('\n')), "0STEP.0 [30,32) device 0, copies to host");
  EXPECT_THAT(copies, testing::HasSubstr("0STEP.0 [36,39) device 0, new parameters from host\n"));
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("0STEP.1 [30,37) worker 0\n"));
  EXPECT_EQ(CurveText(step.memory[0]), "0: parameters 50, gradients 30, optimizer 40\n");
}

TEST(SimulatedStaticGroups, TheHostTakesThoseFirstWhoComeFirst) {
  const SimulatedStep step = Simulated(StepOnHost("0F0 0B0 0STEP\n1F0 1B0 1STEP\n", {}));
  // Worker 1 is through with its backward at 40, worker 0 at 60.
  EXPECT_THAT(CopiesText(step), testing::HasSubstr("1STEP [43,51) optimizer steps on the host\n"
                                                   "0STEP [63,71) optimizer steps on the host\n"));
}

TEST(SimulatedStaticGroups, WhatTheHostHasAlreadyIsNotCopied) {
  const SimulatedStep step = Simulated(StepOnHost(
      "0SWAP_IN.0 0F0 0B0 0DROP.0 0STEP\n", {Group(GroupKind::kParameters, {0, 2}, 50, kHost)}));
  EXPECT_EQ(CopiesText(step),
            "0SWAP_IN.0 [0,5) device 0, copies from host\n"
            "0STEP [35,38) device 0, copies to host\n"
            "0STEP [38,46) optimizer steps on the host\n");
  EXPECT_EQ(step.step_time, Nanos(46));
}

TEST(SimulatedStaticGroups, ParametersLeaveOnlyWhenTheHostHasSentThem) {
  const GroupChoice lent{.placement = Placement::kPeerSwap, .stripes = {{DeviceId(1), Bytes(50)}}};
  const SimulatedStep step =
      Simulated(StepOnHost("0SWAP_IN.0 0F0 0B0 0STEP 0SWAP_OUT.0 0SWAP_OUT_END.0\n1F0 1B0\n",
                           {Group(GroupKind::kParameters, {0, 2}, 50, lent)}));
  EXPECT_THAT(TimelineText(step), testing::HasSubstr("wait 0SWAP_OUT.0 [60,76) worker 0\n"));
}

TEST(SimulatedStaticGroups, ReplicasStepOnTheHostOnce) {
  SimulationInput input = StepOnHost("0F0 0B0 0STEP\n", {});
  input.schedule.replicas = 2;
  const SimulatedStep step = Simulated(input);
  // Both replicas' 30 bytes share the way to the host, and their 50 bytes that back.
  EXPECT_EQ(CopiesText(step),
            "0STEP [30,36) device 0, copies to host\n"
            "0STEP [44,54) device 0, new parameters from host\n"
            "0STEP [36,44) optimizer steps on the host\n"
            "0STEP [30,36) device 1, copies to host\n"
            "0STEP [44,54) device 1, new parameters from host\n");
  EXPECT_EQ(step.step_time, Nanos(54));
}

TEST(SimulatedStaticGroups, PlansThatDoNotFitTheStageAreRefused) {
  const auto refusal = [](const SimulationInput& input) {
    return std::string(Simulate(input).status().message());
  };
  EXPECT_EQ(refusal(TwoLayers("0F0 0B0\n", {Group(GroupKind::kParameters, {0, 1}, 40, kHost),
                                            Group(GroupKind::kParameters, {1, 2}, 11, kHost)})),
            "group 1 of stage 0 has 11 bytes of parameters, but the stage has 50, and groups "
            "before this one 40");
  EXPECT_EQ(refusal(TwoLayers("0F0 0B0\n", {Group(GroupKind::kGradients, {0, 1}, 30,
                                                  {.placement = Placement::kRecompute})})),
            "group 0 of stage 0 is to be recomputed, but nothing computes gradients again");
  EXPECT_EQ(refusal(StepOnHost("0F0 0B0\n", {Group(GroupKind::kOptimizerState, {0, 1}, 30,
                                                   {.placement = Placement::kRecompute})})),
            "group 0 of stage 0 is to be recomputed, but nothing computes optimizer_state again");
  SimulationInput input = StepOnHost("0F0 0B0\n", {});
  input.host_step.push_back(Nanos(1));
  EXPECT_EQ(refusal(input), "there are 2 steps on the host, but the schedule needs 1");
}

}  // namespace
}  // namespace siphon
