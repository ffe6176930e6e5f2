// siphon simulate of what siphon plan writes. Once it refused plans of replicas, whose microbatches
// made up the global batch as often as there are replicas; and it had lower peaks where workers
// stream gradients to the host, because the file did not say by which rule they are freed.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

struct Job {
  std::string name;
  std::string text;
  std::vector<std::string> flags;
};

void PrintTo(const Job& job, std::ostream* out) { *out << job.name; }

constexpr char kGpt[] = R"(
model: {kind: gpt, layers: 4, hidden: 32, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 32, microbatch: 4, clip_norm: 0}
pipeline: {stages: 2, schedule: gpipe}
)";
constexpr char kMlp[] = R"(
model: {kind: mlp, layers: 13, hidden: 128, vocabulary: 257}
data: {kind: synthetic, sequence_length: 8}
train: {global_batch: 8, microbatch: 1, precision: bf16}
pipeline: {stages: 2, schedule: v_half, chunks: 2}
)";

class SimulateAgain : public CommandTest, public testing::WithParamInterface<Job> {
 protected:
  static nlohmann::json Json(const std::string& command, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--format", "json"});
    const CommandEnd end = RunRegisteredCommand(command, std::move(flags));
    EXPECT_EQ(end.code, kExitDone) << command << ": " << end.err;
    return nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_P(SimulateAgain, HasTheStepThatWasPlanned) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string file = directory_ + "/plan.txt";
  std::vector<std::string> flags = {WriteFile("job.yaml", GetParam().text), "--output", file};
  flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
  const nlohmann::json plan = Json("plan", flags);
  ASSERT_TRUE(plan.is_object());
  const nlohmann::json step = Json("simulate", {"--plan", file});
  ASSERT_TRUE(step.is_object());
  EXPECT_EQ(step["step_seconds"], plan["step_seconds"]);
  EXPECT_EQ(step["step_seconds"], step["planned_step_seconds"]);
  EXPECT_EQ(step["peak_bytes"], plan["peak_bytes"]);
  EXPECT_EQ(step["bubble_fraction"], plan["bubble_fraction"]);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, SimulateAgain,
    testing::Values(
        Job{"Replicas",
            kGpt,
            {"--set", "pipeline.schedule=harmony_dp", "--set", "pipeline.stages=4", "--set",
             "pipeline.chunks=2", "--strategy", "keep"}},
        Job{"StreamedGradients",
            kMlp,
            {"--set", "memory.capacity=1100KiB", "--strategy", "weight_offload"}},
        Job{"StreamedLayers", kMlp, {"--set", "memory.capacity=1100KiB", "--strategy", "l2l"}},
        Job{"StreamedByTwoWorkers",
            kMlp,
            {"--set", "memory.capacity=1300KiB", "--set", "pipeline.stages=4", "--strategy",
             "weight_offload"}},
        Job{"SwappedToTheHost", kGpt, {"--set", "memory.capacity=4MiB"}},
        Job{"ParkedWithTheOther",
            kGpt,
            {"--set", "memory.capacity=[5MiB, 14MiB]", "--strategy", "d2d_swap"}},
        Job{"OnAServer",
            kGpt,
            {"--set", "memory.capacity=4MiB", "--set", "topology.name=dgx1_v100", "--set",
             "topology.throttle=none"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace siphon
