// Groups that an action has only while it is at their layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/validate_schedule.h"
#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

// One worker with one stage of so many layers, each 5 ns forward, 5 for the input's gradient and 5
// for the weights', with 40 bytes of parameters and 30 of gradients, which go to the host layer by
// layer at 10 bytes a nanosecond: groups 0, 1, ... are `kind`'s.
SimulationInput Layers(int layers, absl::string_view schedule, std::vector<GroupKind> kinds) {
  const Nanos all(5 * layers);
  StageCost cost{.forward = all, .input_backward = all, .weight_backward = all};
  cost.parameters = Bytes(40 * layers);
  cost.gradients = Bytes(30 * layers);
  SimulationInput input = EqualStages(ParsedSchedule(schedule), cost);
  const LayerCost layer{
      .forward = Nanos(5), .input_backward = Nanos(5), .weight_backward = Nanos(5)};
  input.layers.assign(1, std::vector<LayerCost>(static_cast<size_t>(layers), layer));
  input.transport.host_rate = BytesPerSecond(10 * kGigabyte);
  StagePlan& plan = input.memory.stages.emplace_back();
  for (const GroupKind kind : kinds) {
    const Bytes bytes(kind == GroupKind::kParameters ? 40 : 30);
    for (int index = 0; index < layers; ++index) {
      plan.groups.push_back({{.kind = kind, .layers = {index, index + 1}, .bytes = bytes},
                             {.placement = Placement::kHostSwap}});
    }
  }
  return input;
}

// The first layer waits for its parameters, the next ones come in meanwhile, and two layers' are
// there at most, 80 bytes, beside 90 of gradients.
TEST(SimulatedStreams, ParametersComeInALayerAheadAndGoBehindTheirLayer) {
  const SimulatedStep step =
      Simulated(Layers(3, "0DROP.0 0DROP.1 0DROP.2 0F0\n", {GroupKind::kParameters}));
  EXPECT_EQ(CopiesText(step),
            "0F0 [0,4) device 0, copies from host\n"
            "0F0 [4,8) device 0, copies from host\n"
            "0F0 [9,13) device 0, copies from host\n");
  EXPECT_EQ(TimelineText(step),
            "wait 0F0 [0,4) worker 0\n"
            "0F0 [4,19) worker 0\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 40, gradients 90\n"
            "4: parameters 80, gradients 90\n"
            "9: parameters 80, gradients 90\n"
            "14: parameters 40, gradients 90\n"
            "19: gradients 90\n");
  EXPECT_EQ(step.host_peak, Bytes(120));
}

// What has been brought in before is not waited for.
TEST(SimulatedStreams, TheFirstOnesMayComeInBeforeTheAction) {
  const SimulatedStep step = Simulated(
      Layers(2, "0DROP.0 0DROP.1 0F0 0SWAP_IN.1 0DROP.1 0DROP.0 0B0\n", {GroupKind::kParameters}));
  EXPECT_EQ(CopiesText(step),
            "0F0 [0,4) device 0, copies from host\n"
            "0F0 [4,8) device 0, copies from host\n"
            "0SWAP_IN.1 [14,18) device 0, copies from host\n"
            "0B0 [18,22) device 0, copies from host\n");
  EXPECT_EQ(step.step_time, Nanos(4 + 10 + 4 + 20));
  EXPECT_EQ(Total(step.memory[0].back().bytes), Bytes(60)) << "gradients";
}

// A backward adds to gradients: they come in and go out again, and a copy out has until the second
// layer behind it.
TEST(SimulatedStreams, GradientsComeInAndGoOutBehindTheirLayer) {
  const SimulatedStep step = Simulated(
      Layers(3,
             "0F0 0SWAP_OUT.2 0SWAP_OUT.1 0SWAP_OUT.0 0B0 0SWAP_OUT_END.2 0SWAP_OUT_END.1 "
             "0SWAP_OUT_END.0\n",
             {GroupKind::kGradients}));
  EXPECT_EQ(CopiesText(step),
            "0B0 [15,18) device 0, copies from host\n"
            "0B0 [18,21) device 0, copies from host\n"
            "0B0 [28,31) device 0, copies from host\n"
            "0SWAP_OUT.2 [28,31) device 0, copies to host\n"
            "0SWAP_OUT.1 [38,41) device 0, copies to host\n"
            "0SWAP_OUT.0 [48,51) device 0, copies to host\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 120\n"
            "15: parameters 120, gradients 30\n"
            "18: parameters 120, gradients 60\n"
            "28: parameters 120, gradients 90\n"
            "31: parameters 120, gradients 60\n"
            "41: parameters 120, gradients 30\n"
            "51: parameters 120\n");
  EXPECT_EQ(step.step_time, Nanos(51));
}

// With one buffer nothing comes in ahead, and what has left is gone before the next one comes.
TEST(SimulatedStreams, OneBufferHoldsWhatIsInUseAlone) {
  SimulationInput input =
      Layers(3,
             "0DROP.0 0DROP.1 0DROP.2 0F0 0SWAP_OUT.5 0SWAP_OUT.4 0SWAP_OUT.3 0SWAP_IN.0 "
             "0SWAP_IN.1 0SWAP_IN.2 0B0 0DROP.0 0DROP.1 0DROP.2 0SWAP_OUT_END.5 0SWAP_OUT_END.4 "
             "0SWAP_OUT_END.3\n",
             {GroupKind::kParameters, GroupKind::kGradients});
  input.memory.stages[0].stream_buffers = 1;
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0F0 [0,4) device 0, copies from host\n"
            "0F0 [9,13) device 0, copies from host\n"
            "0F0 [18,22) device 0, copies from host\n"
            "0SWAP_IN.0 [27,31) device 0, copies from host\n"
            "0SWAP_IN.1 [31,35) device 0, copies from host\n"
            "0SWAP_IN.2 [35,39) device 0, copies from host\n"
            "0B0 [39,42) device 0, copies from host\n"
            "0B0 [55,58) device 0, copies from host\n"
            "0B0 [71,74) device 0, copies from host\n"
            "0SWAP_OUT.5 [52,55) device 0, copies to host\n"
            "0SWAP_OUT.4 [68,71) device 0, copies to host\n"
            "0SWAP_OUT.3 [84,87) device 0, copies to host\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 40\n"
            "9: parameters 40\n"
            "18: parameters 40\n"
            "27: parameters 120, gradients 30\n"
            "55: parameters 120, gradients 30\n"
            "71: parameters 120, gradients 30\n"
            "84: gradients 30\n"
            "87:\n");
}

// With two, what comes next waits for what has just been used to be gone.
TEST(SimulatedStreams, TwoBuffersHoldWhatIsInUseAndOneMore) {
  SimulationInput input = Layers(3,
                                 "0F0 0SWAP_OUT.2 0SWAP_OUT.1 0SWAP_OUT.0 0B0 0SWAP_OUT_END.2 "
                                 "0SWAP_OUT_END.1 0SWAP_OUT_END.0\n",
                                 {GroupKind::kGradients});
  input.memory.stages[0].stream_buffers = 2;
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0B0 [15,18) device 0, copies from host\n"
            "0B0 [18,21) device 0, copies from host\n"
            "0B0 [31,34) device 0, copies from host\n"
            "0SWAP_OUT.2 [28,31) device 0, copies to host\n"
            "0SWAP_OUT.1 [41,44) device 0, copies to host\n"
            "0SWAP_OUT.0 [51,54) device 0, copies to host\n");
  EXPECT_EQ(CurveText(step.memory[0]),
            "0: parameters 120\n"
            "15: parameters 120, gradients 30\n"
            "18: parameters 120, gradients 60\n"
            "31: parameters 120, gradients 60\n"
            "44: parameters 120, gradients 30\n"
            "54: parameters 120\n");
}

std::string Each(absl::string_view action, int first, int layers) {
  std::string text;
  for (int layer = 0; layer < layers; ++layer) {
    absl::StrAppend(&text, action, ".", first + layer, " ");
  }
  return text;
}

// As many layers' as there are buffers at most, of parameters two, however many layers there are
// and however slow the link; and no time but the copies' and the layers' own.
class StreamsWithBuffers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Buffers, StreamsWithBuffers, testing::Values(1, 2, 3));

TEST_P(StreamsWithBuffers, HoldNoMoreForMoreLayers) {
  for (const int layers : {1, 2, 3, 4, 7, 12}) {
    for (const int64_t rate : {1, 3, 10, 100}) {
      const std::string text = absl::StrCat(
          Each("0DROP", 0, layers), "0F0 ", Each("0DROP", 0, layers),
          Each("0SWAP_OUT", layers, layers), "0B0 ", Each("0SWAP_OUT_END", layers, layers), "\n");
      SimulationInput input = Layers(layers, text, {GroupKind::kParameters, GroupKind::kGradients});
      input.transport.host_rate = BytesPerSecond(rate * kGigabyte);
      input.memory.stages[0].stream_buffers = GetParam();
      ASSERT_TRUE(ValidateSchedule(input.schedule, SchedulePurpose::kTraining, input.memory).ok());
      const SimulatedStep step = Simulated(input);
      Bytes parameters;
      Bytes gradients;
      for (const MemoryPoint& point : step.memory[0]) {
        parameters = std::max(parameters, point.bytes[MemoryKind::kParameters]);
        gradients = std::max(gradients, point.bytes[MemoryKind::kGradients]);
      }
      EXPECT_LE(parameters, Bytes(40 * std::min({layers, 2, GetParam()}))) << layers << " layers";
      EXPECT_LE(gradients, Bytes(30 * std::min(layers, GetParam()))) << layers << " layers";
      EXPECT_EQ(Total(step.memory[0].back().bytes), Bytes(0));
      EXPECT_GE(step.step_time, Nanos(15 * layers));
      EXPECT_LE(step.step_time, Nanos(15 * layers + (2 * 40 + 2 * 30) * layers / rate + 4 * layers))
          << layers << " layers at " << rate;
    }
  }
}

// Only what an action works with comes in: a forward has no use for gradients.
TEST(SimulatedStreams, LeaveAloneWhatTheActionDoesNotNeed) {
  SimulationInput input =
      Layers(2, "0SWAP_IN.0 0SWAP_OUT.0 0SWAP_OUT.1 0F0 0B0 0SWAP_OUT_END.0 0SWAP_OUT_END.1\n",
             {GroupKind::kGradients});
  const SimulatedStep step = Simulated(input);
  EXPECT_EQ(CopiesText(step),
            "0SWAP_IN.0 [0,3) device 0, copies from host\n"
            "0B0 [10,13) device 0, copies from host\n"
            "0SWAP_OUT.1 [23,26) device 0, copies to host\n"
            "0SWAP_OUT.0 [33,36) device 0, copies to host\n");
}

}  // namespace
}  // namespace siphon
