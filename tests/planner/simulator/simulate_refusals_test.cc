#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/planner/simulator/simulate_testing.h"

namespace siphon {
namespace {

std::string Refusal(absl::string_view schedule) {
  return Refusal(EqualStages(ParsedSchedule(schedule), TenNanos()),
                 absl::StatusCode::kFailedPrecondition);
}

TEST(SimulateRefuses, ToUseActivationsThatAreAway) {
  EXPECT_EQ(Refusal("0F0 0SWAP_OUT0 0SWAP_OUT_END0 0B0\n"),
            "worker 0 has 0B0, which needs the activations of stage 0, microbatch 0 resident, but "
            "they are away since 0SWAP_OUT_END0\n"
            "worker 0: 0F0 0SWAP_OUT0 0SWAP_OUT_END0 0B0 <-- here");
}

TEST(SimulateRefuses, ADeadlock) {
  EXPECT_EQ(Refusal("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n"),
            "deadlock: worker 0 waits in 0B0 for 1B0 of worker 1, which waits in 1F1 for 0F1 of "
            "worker 0\n"
            "worker 0: 0F0 0B0 <-- here 0F1 0B1\n"
            "worker 1: 1F1 1B1 1F0 1B0");
}

TEST(SimulateRefuses, AForwardWhoseInputNobodyMakes) {
  EXPECT_EQ(Refusal("0F0 0B0 0B1\n1F0 1B0 1F1 1B1\n"),
            "worker 0 has 0B1, which needs the activations of stage 0, microbatch 1 resident, but "
            "they are not there\n"
            "worker 0: 0F0 0B0 0B1 <-- here\n"
            "worker 1: 1F0 1B0 1F1 1B1");
  EXPECT_EQ(Refusal("0F0 0B0\n1F0 1B0 1F1 1B1\n"),
            "worker 1 has 1F1, but worker 0 has no 0F1\n"
            "worker 0: 0F0 0B0\n"
            "worker 1: 1F0 1B0 1F1 <-- here 1B1");
}

TEST(SimulateRefuses, AMessageThatNobodyReceives) {
  EXPECT_EQ(Refusal("0F0 0SEND_F0\n1F0\n"),
            "worker 0 has 0SEND_F0, but worker 1 has no 1RECV_F0\n"
            "worker 0: 0F0 0SEND_F0 <-- here\n"
            "worker 1: 1F0");
}

TEST(SimulateRefuses, AMessageThatNobodySends) {
  EXPECT_EQ(Refusal("0F0\n1RECV_F0 1F0\n"),
            "worker 1 has 1F0, but worker 0 has no 0SEND_F0\n"
            "worker 0: 0F0\n"
            "worker 1: 1RECV_F0 1F0 <-- here");
}

TEST(SimulateRefuses, AReceiveBehindItsUse) {
  EXPECT_EQ(Refusal("0F0 0SEND_F0\n1F0 1RECV_F0\n"),
            "worker 1 has 1F0 before 1RECV_F0, which brings what it needs\n"
            "worker 0: 0F0 0SEND_F0\n"
            "worker 1: 1F0 <-- here 1RECV_F0");
}

TEST(SimulateRefuses, ASendBeforeItsTensorIsComputed) {
  EXPECT_EQ(Refusal("0SEND_F0 0F0\n1RECV_F0 1F0\n"),
            "worker 0 has 0SEND_F0 before what it sends is computed\n"
            "worker 0: 0SEND_F0 <-- here 0F0\n"
            "worker 1: 1RECV_F0 1F0");
}

TEST(SimulateRefuses, ToComputeAgainWhatOnlyWNeeds) {
  EXPECT_EQ(Refusal("0F0 0I0 0DROP0 0RECOMPUTE0 0W0\n"),
            "worker 0 has 0DROP0 behind the I: what W needs then cannot be computed again\n"
            "worker 0: 0F0 0I0 0DROP0 <-- here 0RECOMPUTE0 0W0");
}

TEST(SimulateRefuses, MoreThanTheCapacity) {
  StageCost cost = TenNanos();
  cost.parameters = Bytes(1024);
  cost.stash = Bytes(512);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0F1 0F2 0B2 0B1 0B0\n"), cost);
  input.capacity = {Bytes(2304)};
  EXPECT_EQ(Refusal(input, absl::StatusCode::kResourceExhausted),
            "worker 0 has 0F2, which asks for 512 B of activations, but it has 256 B free of "
            "2.25 KiB (held: parameters 1.00 KiB, activations 1.00 KiB)\n"
            "worker 0: 0F0 0F1 0F2 <-- here 0B2 0B1 0B0");
  input.capacity = {Bytes(2560)};
  EXPECT_EQ(Total(Simulated(input).peak[0]), Bytes(2560));
}

TEST(SimulateRefuses, ParametersThatDoNotFit) {
  StageCost cost = TenNanos();
  cost.parameters = Bytes(1024);
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n"), cost);
  input.capacity = {Bytes(1000)};
  EXPECT_EQ(
      Refusal(input, absl::StatusCode::kResourceExhausted),
      "worker 0 holds 1.00 KiB before its first action (parameters 1.00 KiB); its capacity is "
      "1000 B, 24 B less");
}

TEST(SimulateRefuses, SizesThatDoNotMatch) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), TenNanos());
  input.stages.pop_back();
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "there are 1 costs of stages, but the schedule needs 2");
  input.stages.push_back(TenNanos());
  input.stages[1].input = Bytes(3);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "stage 0 gives 0 bytes to stage 1, which takes 3");
  input.stages[1].input = Bytes(0);
  input.layers = {{{.forward = Nanos(9)}}, {}};
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "the 1 layers of stage 0 do not add up to the cost of the stage: forward 9 of 10 ns, "
            "backward 0 of 20 ns, activations 0 of 0 bytes");
  input.layers.clear();
  input.stages[0].forward = Nanos(-1);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "a figure of the cost of stage 0 is -1; 0 is the least");
}

TEST(SimulateRefuses, LayersThatShareWhatTheyDoNotSave) {
  const LayerCost layer{.forward = Nanos(5),
                        .input_backward = Nanos(5),
                        .weight_backward = Nanos(5),
                        .stash = Bytes(50)};
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n"), TenNanos());
  input.stages[0].stash = Bytes(100);
  input.layers = {{layer, layer}};
  input.layers[0][1].shared_before = Bytes(50);
  EXPECT_TRUE(Simulate(input).ok());
  input.layers[0][1].shared_before = Bytes(51);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "layer 1 of stage 0 shares 51 bytes with the layer before it, more than both save");
  input.layers[0][1].shared_before = Bytes(-1);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "a figure of a layer of stage 0 is -1; 0 is the least");
  input.layers[0][1].shared_before = Bytes(0);
  input.layers[0][0].shared_before = Bytes(1);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "layer 0 of stage 0 shares 1 bytes with the layer before it, which the stage does not "
            "have");
}

TEST(SimulateRefuses, FiguresWhoseSumsWouldNotFitIntoSixtyThreeBits) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n"), TenNanos());
  input.stages[0].forward = Nanos(int64_t{1} << 60);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "nanoseconds of all actions and copies together: about 1.4e+19; the simulator takes "
            "1.2e+18 at most");
  input.stages[0] = TenNanos();
  input.stages[0].stash = Bytes(int64_t{1} << 60);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "bytes of all actions together: about 5.5e+19; the simulator takes 1.2e+18 at most");
  input.stages[0].stash = Bytes(int64_t{1} << 40);
  input.transport.host_rate = BytesPerSecond(1);
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "nanoseconds of all actions and copies together: about 5.3e+22; the simulator takes "
            "1.2e+18 at most");
  input.schedule.replicas = 1'000'000'000;
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "tasks in the step, layer by layer: about 4e+09; the simulator takes 2e+07 at most");
}

TEST(SimulateRefuses, StreamBuffersThatNobodyHas) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n"), TenNanos());
  input.memory.stages.resize(1);
  for (const int buffers : {0, kMostStreamBuffers + 1}) {
    input.memory.stages[0].stream_buffers = buffers;
    EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
              absl::StrCat("the memory plan has ", buffers,
                           " stream buffers in stage 0; it can have 1 to 3"));
  }
}

TEST(SimulateRefuses, DevicesThatDoNotFitTheWorkers) {
  SimulationInput input = EqualStages(ParsedSchedule("0F0 0B0\n1F0 1B0\n"), TenNanos());
  input.topology = UniformTopology(2, BytesPerSecond(1), Nanos(0));
  input.device_of_worker = {DeviceId(1), DeviceId(1)};
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "workers 0 and 1 are both on device 1");
  input.device_of_worker = {DeviceId(1), DeviceId(2)};
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "worker 1 is on device 2, but the topology has 2 devices");
  input.device_of_worker = {DeviceId(1), DeviceId(0)};
  input.topology.links.clear();
  EXPECT_EQ(Refusal(input, absl::StatusCode::kInvalidArgument),
            "there is no path from device 1 to device 0: no link, and device 1 is behind no switch "
            "through which the host could be reached");
}

}  // namespace
}  // namespace siphon
