// siphon simulate on plan files with a memory plan, a mapping and a topology.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/simulate_plan_fixture.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Worker 0 on device 1 parks 10 MB of microbatch 0: 4 MB with worker 1 on device 0, 6 MB on device
// 2, which has no worker. A pass takes 10 ms, a message 2 ms, a megabyte on a link 1 ms.
constexpr absl::string_view kPlan = R"(siphon plan 1
job
  model: gpt
  schedule: 1f1b
  strategy: d2d_swap
  microbatch: 4
  global_batch: 8
  costs: measured on paper
predicted
  step_time: 90ms
  lower_bound: 80ms
topology
  name: three in a row
  device 0: memory 1GB, numa 0
  device 1: memory 1GB, numa 0
  device 2: memory 8MB, numa 0
  links 0 -> 1: rate 1GB/s, latency 2ms
  links 1 -> 0: rate 1GB/s, latency 2ms
  links 1 -> 2: rate 1GB/s
  links 2 -> 1: rate 1GB/s
worker 0
  device: 1
  capacity: 24MB
worker 1
  device: 0
  capacity: 24MB
stage 0
  worker: 0
  layers: 0 to 1
  forward: 10ms
  input_backward: 10ms
  weight_backward: 10ms
  parameters: 4MB
  stash: 10MB
  layers 0 to 1: forward 5ms, input_backward 5ms, weight_backward 5ms, stash 5MB
  group 0: activations of layers 0 to 1, 10MB, d2d_swap to device 0 4MB, device 2 6MB, else recompute
stage 1
  worker: 1
  layers: 2 to 2
  forward: 10ms
  input_backward: 10ms
  weight_backward: 10ms
  parameters: 4MB
  stash: 10MB
  layer 2: forward 10ms, input_backward 10ms, weight_backward 10ms, stash 10MB
training
  worker 0: 0F0 0SWAP_OUT0.0 0SEND_F0 0F1 0SWAP_OUT_END0.0 0SEND_F1 0SWAP_IN0.0 0RECV_B0 0B0 0RECV_B1 0B1
  worker 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
)";

class SimulateMemoryPlan : public SimulatePlanFixture {
 protected:
  // The exit code for the plan after one replacement; what it printed is in out_ and error_.
  int RunEdited(absl::string_view from, absl::string_view to) {
    const std::string edited = absl::StrReplaceAll(kPlan, {{from, to}});
    EXPECT_NE(edited, kPlan) << from;
    return Run(edited);
  }
};

TEST_F(SimulateMemoryPlan, CountsBytesWhereTheyGo) {
  ASSERT_EQ(Run(kPlan, {"--format", "json"}), kExitDone) << error_;
  const auto json = nlohmann::json::parse(out_);
  // F0 [0,10), out [10,16), F1 [10,20), in [20,26), B0 [44,64), B1 [76,96): as without a swap.
  EXPECT_DOUBLE_EQ(json["step_seconds"], 0.096);
  EXPECT_EQ(json["strategy"], "d2d_swap");
  EXPECT_EQ(json["mapping"], (std::vector<int>{1, 0}));
  EXPECT_EQ(json["choices"]["d2d_swap"], 10'000'000);  // one of two live microbatches
  EXPECT_EQ(json["choices"]["keep"], 2 * 4'000'000 + 2 * 10'000'000);
  EXPECT_DOUBLE_EQ(json["planned_step_seconds"], 0.090);
  EXPECT_DOUBLE_EQ(json["lower_bound_seconds"], 0.080);
  EXPECT_NEAR(json["gap"].get<double>(), 0.2, 1e-9);
  // Device 2 holds its stripe; worker 1 has that of device 0 beside its own activations.
  EXPECT_EQ(json["other_peaks"][0]["name"], "device 2");
  EXPECT_EQ(json["other_peaks"][0]["bytes"], 6'000'000);
  EXPECT_EQ(json["memory"][1]["lent"], 4'000'000);
  EXPECT_EQ(json["memory"][1]["activations"], 10'000'000);
  int64_t parked = 0;
  for (const auto& link : json["links"]) {
    if (link["name"] == "device 1 to device 2") parked += link["bytes"].get<int64_t>();
  }
  EXPECT_EQ(parked, 6'000'000) << json["links"];
}

TEST_F(SimulateMemoryPlan, TellsWhatTheFileSaidAndWhereTensorsAre) {
  ASSERT_EQ(Run(kPlan), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("2 microbatches of 4, d2d_swap\n"));
  EXPECT_THAT(out_, HasSubstr("as planned           90.0 ms  what the file says"));
  EXPECT_THAT(out_, HasSubstr("lower bound          80.0 ms"));
  EXPECT_THAT(out_, HasSubstr("this step is 20.0 % above it"));
  EXPECT_THAT(out_, HasSubstr("tensors by choice"));
  EXPECT_THAT(out_, HasSubstr("worker  device  live"));
  EXPECT_THAT(out_, HasSubstr("peaks of what holds swapped tensors"));
}

TEST_F(SimulateMemoryPlan, SaysWhereTheBoundIsOfOtherFacts) {
  ASSERT_EQ(RunEdited("lower_bound: 80ms", "lower_bound: 97ms"), kExitDone) << error_;
  EXPECT_THAT(out_, HasSubstr("this step is shorter: the file's facts were edited"));
}

TEST_F(SimulateMemoryPlan, ShowsCopiesOnTheirLanes) {
  ASSERT_EQ(Run(kPlan, {"--trace", directory_ + "/t.json", "--html", directory_ + "/t.html"}),
            kExitDone)
      << error_;
  EXPECT_THAT(FileText("t.json"), HasSubstr("\"0SWAP_OUT0.0\""));
  EXPECT_THAT(FileText("t.json"), HasSubstr("\"0SWAP_IN0.0\""));
  EXPECT_THAT(FileText("t.html"), HasSubstr("<title>0SWAP_OUT0.0: "));
}

TEST_F(SimulateMemoryPlan, WaitsForALinkThatIsTooSlow) {
  ASSERT_EQ(Run(kPlan, {"--format", "json"}), kExitDone) << error_;
  const auto fast = nlohmann::json::parse(out_);
  EXPECT_EQ(fast["exposed_wait_seconds"][0]["swap"], 0.0);
  const std::string slow_links =
      absl::StrReplaceAll(kPlan, {{"links 1 -> 2: rate 1GB/s", "links 1 -> 2: rate 50MB/s"}});
  ASSERT_EQ(Run(slow_links, {"--format", "json"}), kExitDone) << error_;
  const auto slow = nlohmann::json::parse(out_);
  // 6 MB take 120 ms from the end of F0 at 10 ms on: SWAP_OUT_END waits from 20 ms to 130 ms. What
  // comes back is there at 136 ms, 4 ms behind the gradient that B0 needs as well.
  EXPECT_NEAR(slow["exposed_wait_seconds"][0]["swap"], 0.114, 1e-9);
  EXPECT_GT(slow["step_seconds"], fast["step_seconds"].get<double>() + 0.05);
}

TEST_F(SimulateMemoryPlan, RefusesAPlanThatDeadlocksAndMarksTheCell) {
  EXPECT_EQ(RunEdited("0SEND_F1 0SWAP_IN0.0 0RECV_B0 0B0 0RECV_B1 0B1",
                      "0SWAP_IN0.0 0RECV_B0 0B0 0RECV_B1 0B1 0SEND_F1"),
            kExitBadInput);
  EXPECT_THAT(error_, testing::StartsWith("siphon: DIR/plan.txt: "));
  EXPECT_THAT(error_, HasSubstr("<-- here"));
  EXPECT_EQ(out_, "");
}

TEST_F(SimulateMemoryPlan, RefusesAGroupThatIsStillLeavingAndMarksTheCell) {
  EXPECT_EQ(RunEdited(" 0SWAP_OUT_END0.0", ""), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("0SWAP_IN0.0 <-- here"));
  EXPECT_THAT(error_, HasSubstr("group 0 of stage 0"));
}

TEST_F(SimulateMemoryPlan, RefusesALenderThatTheOwnerHasNoLinkWith) {
  EXPECT_EQ(RunEdited("  links 2 -> 1: rate 1GB/s\n", ""), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr(":35:12: device 2 cannot lend to device 1"));
  EXPECT_THAT(error_, HasSubstr("linked with it: 0"));
  EXPECT_EQ(out_, "");
}

TEST_F(SimulateMemoryPlan, RefusesActionsOnGroupsThatThePlanDoesNotHave) {
  EXPECT_EQ(RunEdited("0SWAP_OUT0.0", "0SWAP_OUT0.7"), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("0SWAP_OUT0.7 <-- here"));
  EXPECT_EQ(RunEdited("d2d_swap to device 0 4MB, device 2 6MB", "keep"), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("0SWAP_OUT0.0 <-- here"));
}

TEST_F(SimulateMemoryPlan, RefusesWhatDoesNotFitWithItsOwnCode) {
  // The owner, the lender with a worker, and the one without.
  EXPECT_EQ(RunEdited("device: 1\n  capacity: 24MB", "device: 1\n  capacity: 23MB"),
            kExitDoesNotFit);
  EXPECT_THAT(error_, HasSubstr("<-- here"));
  EXPECT_THAT(error_, HasSubstr("worker 0"));
  EXPECT_EQ(RunEdited("device: 0\n  capacity: 24MB", "device: 0\n  capacity: 17MB"),
            kExitDoesNotFit);
  EXPECT_THAT(error_, HasSubstr("worker 1"));
  EXPECT_EQ(RunEdited("memory 8MB", "memory 5MB"), kExitDoesNotFit);
  EXPECT_THAT(error_, HasSubstr("device 2"));
}

TEST_F(SimulateMemoryPlan, NamesTheLineOfAGroupThatCannotBe) {
  EXPECT_EQ(RunEdited("device 2 6MB,", "device 3 6MB,"), kExitBadInput);
  EXPECT_EQ(error_, "siphon: DIR/plan.txt:36:12: there is no device 3; devices are 0 to 2\n");
  EXPECT_EQ(RunEdited("device: 1\n", "device: 0\n"), kExitBadInput);
  EXPECT_EQ(error_, "siphon: DIR/plan.txt:25:11: device 0 has worker 0 already\n");
}

TEST_F(SimulateMemoryPlan, RefusesLayersThatDoNotAddUpToTheirStage) {
  EXPECT_EQ(RunEdited("layer 2: forward 10ms", "layer 2: forward 11ms"), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("layers of stage 1 do not add up to the cost of the stage"));
}

}  // namespace
}  // namespace siphon
