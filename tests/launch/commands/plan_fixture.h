#ifndef SIPHON_TESTS_LAUNCH_COMMANDS_PLAN_FIXTURE_H_
#define SIPHON_TESTS_LAUNCH_COMMANDS_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {

// Jobs and runs of `siphon plan`.

// Eight microbatches are alive at once on both workers: most of the memory is activations.
inline constexpr char kSmallJob[] = R"(
model: {kind: gpt, layers: 4, hidden: 32, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 32, microbatch: 4}
pipeline: {stages: 2, schedule: gpipe}
)";

// GPT-5.3B of MPress on a DGX-1, by preset alone.
inline constexpr char kServerJob[] = R"(
model: {kind: gpt, layers: 25, hidden: 4096, heads: 32, vocabulary: 50257, tie_embeddings: false}
data: {kind: tokens, path: /nowhere, sequence_length: 1024}
train: {global_batch: 16, microbatch: 2, precision: fp16}
pipeline: {stages: 8, schedule: dapple, backend: cuda}
topology: {name: dgx1_v100}
)";

class PlanCommand : public CommandTest {
 protected:
  std::string Write(absl::string_view text) const { return WriteFile("job.yaml", text); }

  static CommandEnd Run(std::vector<std::string> flags) {
    return RunRegisteredCommand("plan", std::move(flags));
  }

  static nlohmann::json Json(std::vector<std::string> flags, int code) {
    flags.insert(flags.end(), {"--format", "json"});
    const CommandEnd end = Run(std::move(flags));
    EXPECT_EQ(end.code, code) << end.err;
    return nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  }

  // So many percent of what the fullest worker of the small job holds if it keeps everything.
  std::string Capacity(const std::string& job, int percent) {
    const auto peaks = Json({job}, kExitDone)["peak_bytes"].get<std::vector<int64_t>>();
    const int64_t most = *std::max_element(peaks.begin(), peaks.end());
    return absl::StrCat("memory.capacity=", most / 100 * percent, "B");
  }
};

}  // namespace siphon

#endif  // SIPHON_TESTS_LAUNCH_COMMANDS_PLAN_FIXTURE_H_
