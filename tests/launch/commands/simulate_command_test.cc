#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/simulate_plan_fixture.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using testing::HasSubstr;

// Two stages of 10, 10 and 10 ms a pass, 2 ms a message, 1 MiB of activations a microbatch.
constexpr absl::string_view kPlan = R"(siphon plan 1
job
  model: gpt
  schedule: 1f1b
  microbatch: 4
  global_batch: 8
  costs: measured on paper
  link_latency: 2ms
stage 0
  worker: 0
  layers: 0 to 1
  forward: 10ms
  input_backward: 10ms
  weight_backward: 10ms
  parameters: 4MiB
  stash: 1MiB
  output: 1KiB
stage 1
  worker: 1
  layers: 2 to 2
  forward: 10ms
  input_backward: 10ms
  weight_backward: 10ms
  parameters: 4MiB
  stash: 1MiB
  input: 1KiB
training
  worker 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
  worker 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1
)";

class SimulateCommand : public SimulatePlanFixture {};

TEST_F(SimulateCommand, ShowsTheStepOfAPlan) {
  ASSERT_EQ(Run(kPlan, {"--columns", "66"}), kExitDone) << error_;
  // Worker 0: F0 [0,10) F1 [10,20) B0 [44,64) B1 [76,96); worker 1: F0 [12,22) B0 [22,42) F1
  // [44,54) B1 [54,74): it asks for F1's input only after B0, so that the message ends at 44.
  EXPECT_THAT(out_, HasSubstr(R"(gpt, 1f1b: 2 workers, 2 stages, 2 microbatches of 4
costs: measured on paper
)"));
  EXPECT_THAT(out_, HasSubstr("worker 0  0F0==="));
  EXPECT_THAT(out_, HasSubstr("step time            96.0 ms\n"));
  // 120 of 192 ms are busy.
  EXPECT_THAT(out_, HasSubstr("bubble_fraction      37.5 %"));
  EXPECT_THAT(out_, HasSubstr("worker 0 to worker 1, forward"));
  EXPECT_THAT(out_, HasSubstr("exposed waits by cause\nworker  predecessor"));
}

TEST_F(SimulateCommand, GivesTheFieldsOfTheContractAsJson) {
  ASSERT_EQ(Run(kPlan, {"--format", "json"}), kExitDone) << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_DOUBLE_EQ(json["step_seconds"], 0.096);
  EXPECT_NEAR(json["bubble_fraction"], 72.0 / 192, 1e-9);
  // Idle between first and last action: worker 0 [20,44) and [64,76), worker 1 [42,44).
  EXPECT_NEAR(json["inner_idle_fraction"], 38.0 / 192, 1e-9);
  EXPECT_EQ(json["peak_live_activations"], (std::vector<int>{2, 1}));
  ASSERT_EQ(json["peak_bytes"].size(), 2u);
  EXPECT_GE(json["peak_bytes"][0], (4 + 2) << 20);
  EXPECT_EQ(json["memory"][0]["activations"], 2 << 20);
  EXPECT_EQ(json["link_bytes"], (std::vector<int>{2048, 2048}));
  EXPECT_EQ(json["links"][0]["name"], "worker 0 to worker 1");
  EXPECT_EQ(json["channels"][0]["name"], "worker 0 to worker 1, forward");
}

TEST_F(SimulateCommand, WritesTraceAndPictures) {
  ASSERT_EQ(Run(kPlan, {"--trace", directory_ + "/t.json", "--html", directory_ + "/t.html",
                        "--svg", directory_ + "/t.svg"}),
            kExitDone)
      << error_;
  const auto trace = nlohmann::json::parse(FileText("t.json"));
  EXPECT_GT(trace["traceEvents"].size(), 10u);
  EXPECT_THAT(FileText("t.html"), HasSubstr("<title>1B0: 20.0 ms, from 22.0 ms</title>"));
  EXPECT_THAT(FileText("t.svg"), testing::StartsWith("<svg "));
  // Before anything else.
  EXPECT_EQ(Run("no plan", {"--svg", "/no/such/place.svg"}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --svg: writing /no/such/place.svg: folder /no/such: No such file or "
            "directory\n");
}

TEST_F(SimulateCommand, RefusesAPlanThatDeadlocksAndMarksTheCell) {
  const std::string plan =
      absl::StrReplaceAll(kPlan, {{"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                                   "0F0 0SEND_F0 0RECV_B1 0RECV_B0 0B0 0F1 0SEND_F1 0B1"}});
  EXPECT_EQ(Run(plan), kExitBadInput);
  EXPECT_THAT(error_, testing::StartsWith("siphon: DIR/plan.txt: "));
  EXPECT_THAT(error_, HasSubstr("<-- here"));
  EXPECT_EQ(out_, "");
}

TEST_F(SimulateCommand, RefusesActivationsThatAreAway) {
  const std::string plan = absl::StrReplaceAll(
      kPlan, {{"0F0 0SEND_F0 0F1", "0F0 0SEND_F0 0SWAP_OUT0 0SWAP_OUT_END0 0F1"}});
  EXPECT_EQ(Run(plan), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("0B0 <-- here"));
}

TEST_F(SimulateCommand, RefusesWhatDoesNotFitWithItsOwnCode) {
  const std::string plan =
      absl::StrReplaceAll(kPlan, {{"stage 0\n", "worker 0\n  capacity: 5MiB\nstage 0\n"}});
  EXPECT_EQ(Run(plan), kExitDoesNotFit);
  EXPECT_THAT(error_, HasSubstr("<-- here"));
  EXPECT_THAT(error_, HasSubstr("worker 0"));
}

constexpr absl::string_view kJob = R"(model: {kind: gpt, layers: 6, hidden: 64, heads: 4}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 32, microbatch: 4}
pipeline: {stages: 4, schedule: 1f1b}
)";

TEST_F(SimulateCommand, TakesAJobFileWithCalculatedCosts) {
  const std::string job = WriteFile("job.yaml", kJob);
  ASSERT_EQ(RunWith({"--config", job, "--device", "A100", "--format", "json"}), kExitDone)
      << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["costs"], "calculated for A100");
  EXPECT_EQ(json["peak_live_activations"], (std::vector<int>{4, 3, 2, 1}));
  EXPECT_GT(json["step_seconds"], 0.0);
}

// As it would be trained: with what its memory.strategy does.
TEST_F(SimulateCommand, TakesAJobFileThatDoesNotFitWithItsStrategy) {
  const std::string job = WriteFile("job.yaml", kJob);
  const std::vector<std::string> tight = {"--config", job,   "--set", "memory.capacity=3MiB",
                                          "--format", "json"};
  std::vector<std::string> kept = tight;
  kept.insert(kept.end(), {"--set", "memory.strategy=keep"});
  EXPECT_EQ(RunWith(kept), kExitDoesNotFit);
  EXPECT_THAT(error_, HasSubstr("<-- here"));
  if (kSanitized) GTEST_SKIP() << "rest skipped, because it takes minutes under a sanitizer";
  ASSERT_EQ(RunWith(tight), kExitDone) << error_;
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["strategy"], "auto");
  for (const auto& peak : json["peak_bytes"]) EXPECT_LE(peak, 3 << 20);
}

// A byte is little to the simulator, which knows less of what workers hold than the memory model.
TEST_F(SimulateCommand, RefusesAJobThatIsAByteTooLargeAsThePlanDoes) {
  const std::string job = WriteFile("job.yaml", kJob);
  for (const std::string schedule : {"gpipe", "1f1b", "looped_bfs"}) {
    std::vector<std::string> flags = {"--config", job, "--set", "pipeline.schedule=" + schedule};
    const CommandEnd memory = RunRegisteredCommand(
        "memory", {job, "--set", "pipeline.schedule=" + schedule, "--format", "json"});
    const auto needed = nlohmann::json::parse(memory.out)["max_bytes"].get<int64_t>();
    flags.insert(flags.end(), {"--set", "memory.strategy=keep", "--set",
                               absl::StrCat("memory.capacity=", needed, "B")});
    EXPECT_EQ(RunWith(flags), kExitDone) << schedule << error_;
    flags.back() = absl::StrCat("memory.capacity=", needed - 1, "B");
    EXPECT_EQ(RunWith(flags), kExitDoesNotFit) << schedule;
    EXPECT_EQ(out_, "");
    EXPECT_THAT(error_, HasSubstr("worker ")) << schedule;
  }
}

constexpr absl::string_view kDevice = R"(name: "one core"
product_flops_per_second: 50000000000
copy_bytes_per_second: 10000000000
operation_overhead: 1us
memory: 8GiB
)";

TEST_F(SimulateCommand, TakesACalibratedDevice) {
  const std::string job = WriteFile("job.yaml", kJob);
  const auto step_seconds = [&](absl::string_view device) -> double {
    EXPECT_EQ(
        RunWith({"--config", job, "--device", WriteFile("cpu.yaml", device), "--format", "json"}),
        kExitDone)
        << error_;
    const auto json = nlohmann::json::parse(out_);
    EXPECT_EQ(json["costs"], "calculated for one core");
    return json["step_seconds"];
  };
  const double fast = step_seconds(kDevice);
  EXPECT_GT(fast, 0.0);
  // A tenth of the products, copies and operations takes ten times as long.
  const double slow = step_seconds(absl::StrReplaceAll(
      kDevice, {{"50000000000", "5000000000"}, {"10000000000", "1000000000"}, {"1us", "10us"}}));
  EXPECT_NEAR(slow, 10 * fast, 0.01 * slow);
}

TEST_F(SimulateCommand, NamesThePlaceOfABrokenDevice) {
  const std::string job = WriteFile("job.yaml", kJob);
  const auto refused = [&](absl::string_view device) {
    EXPECT_EQ(RunWith({"--config", job, "--device", WriteFile("cpu.yaml", device)}), kExitBadInput);
    EXPECT_EQ(out_, "");
    return error_;
  };
  EXPECT_EQ(refused(absl::StrReplaceAll(kDevice, {{"memory", "memroy"}})),
            "siphon: DIR/cpu.yaml:5:1: unknown key 'memroy'; did you mean 'memory'?\n");
  EXPECT_EQ(refused(absl::StrReplaceAll(kDevice, {{"10000000000", "0"}})),
            "siphon: DIR/cpu.yaml:3:24: copy_bytes_per_second: is 0; must have been measured and "
            "be at least 100\n");
  EXPECT_EQ(refused(absl::StrReplaceAll(kDevice, {{"1us", "-1us"}})),
            "siphon: DIR/cpu.yaml:4:21: operation_overhead: '-1us' is negative\n");
  EXPECT_EQ(refused("name: a\nname: b\n"),
            "siphon: DIR/cpu.yaml:2:1: name: stands a second time, first in line 1; remove one of "
            "them\n");
  EXPECT_EQ(refused("name: a\n"),
            "siphon: DIR/cpu.yaml:1:1: a device has no 'product_flops_per_second'; it needs one\n");
  EXPECT_EQ(refused("A100"),
            "siphon: DIR/cpu.yaml:1:1: is 'A100'; a device is written as 'key: value' lines\n");
  EXPECT_THAT(refused(""), HasSubstr("is empty; a device is written as 'key: value' lines\n"));
  EXPECT_EQ(RunWith({"--config", job, "--device", directory_}), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: --device: 'DIR' is neither a known device (GTX-1080Ti, P100, V100, V100-32, "
            "A100, A100-80, H100, H200, B300) nor a file that can be read; siphon profile "
            "--calibrate writes one\n");
}

TEST_F(SimulateCommand, WritesThePlanThatItSimulates) {
  const std::string job = WriteFile("job.yaml", kJob);
  ASSERT_EQ(RunWith({"--config", job, "--set", "pipeline.schedule=zb_h1", "--output",
                     directory_ + "/written.txt"}),
            kExitDone)
      << error_;
  const std::string of_job = out_;
  ASSERT_EQ(Run(FileText("written.txt")), kExitDone) << error_;
  EXPECT_EQ(out_, of_job);
  EXPECT_THAT(of_job, HasSubstr("costs: calculated for CPU cores as most are, 1 a worker\n"));
}

TEST_F(SimulateCommand, CountsInUnitsWhereNothingSaysOnWhatAJobComputes) {
  const std::string job = WriteFile("job.yaml", kJob);
  ASSERT_EQ(RunWith({"--config", job, "--set", "pipeline.schedule=zb_h1", "--set",
                     "pipeline.backend=cuda"}),
            kExitDone)
      << error_;
  EXPECT_THAT(out_, HasSubstr("costs: unit (nothing was measured or calculated"));
  // F = I = W: 24 slots of work and 3 idle ones a worker, as in the zero-bubble paper.
  EXPECT_THAT(out_, HasSubstr("bubble_fraction      11.1 %"));
}

// What siphon plan says of the job; how much memory there is changes no layer's time and no link.
TEST_F(SimulateCommand, CostsAJobAsItsPlanWhateverTheCapacity) {
  const std::string job =
      WriteFile("job.yaml", absl::StrCat(kJob, "topology: {name: dgx1_v100, throttle: none}\n",
                                         "memory: {strategy: recompute}\n"));
  const auto run = [&](const std::string& command, const std::string& capacity) {
    const CommandEnd end = RunRegisteredCommand(
        command, {"--config", job, "--set", "memory.capacity=" + capacity, "--format", "json"});
    EXPECT_EQ(end.code, kExitDone) << end.err;
    return nlohmann::json::parse(end.out);
  };
  for (const std::string capacity : {"1GiB", "3500KiB"}) {
    const auto plan = run("plan", capacity);
    const auto step = run("simulate", capacity);
    EXPECT_EQ(step["costs"], "calculated for V100-32") << capacity;
    EXPECT_EQ(step["step_seconds"], plan["step_seconds"]) << capacity;
    EXPECT_EQ(step["peak_bytes"], plan["peak_bytes"]) << capacity;
    EXPECT_EQ(step["choices"]["recompute"] > 0, capacity != "1GiB");
    EXPECT_FALSE(step["links"].empty());
  }
}

TEST_F(SimulateCommand, WantsAPlanOrAJob) {
  EXPECT_EQ(RunWith({}), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("a plan file or a job file"));
  EXPECT_EQ(Run(kPlan, {"--set", "train.steps=1"}), kExitBadInput);
  EXPECT_THAT(error_, HasSubstr("belong to a job file"));
}

TEST_F(SimulateCommand, NamesTheLineThatIsNoPlan) {
  EXPECT_EQ(Run(absl::StrReplaceAll(kPlan, {{"forward: 10ms", "forward: ten"}})), kExitBadInput);
  EXPECT_EQ(error_,
            "siphon: DIR/plan.txt:12:12: 'ten' is not a number with a unit, such as '5ms'\n");
}

}  // namespace
}  // namespace siphon
