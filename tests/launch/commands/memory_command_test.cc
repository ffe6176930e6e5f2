#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launch/commands/parameter_count.h"
#include "launch/plan_job/matrix_kernels.h"
#include "launch/process/exit_codes.h"
#include "launch/profile/profile_file.h"
#include "tests/launch/commands/run_command.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using testing::HasSubstr;
using testing::Not;

// 50,257 ids of data that is not there; the shape of GPT-5.3B.
constexpr char kLargeJob[] = R"(
model: {kind: gpt, layers: 25, hidden: 4096, heads: 32, vocabulary: 50257, tie_embeddings: false,
        dropout: 0.1}
data: {kind: tokens, path: /nowhere, sequence_length: 1024}
train: {global_batch: 16, microbatch: 2, precision: fp16}
pipeline: {stages: 8, schedule: 1f1b, backend: cuda, partition: [4, 3, 3, 3, 3, 3, 3, 5]}
)";

constexpr char kSmallJob[] = R"(
model: {kind: gpt, layers: 4, hidden: 64, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 16, microbatch: 4}
pipeline: {stages: 2, schedule: gpipe}
)";

class MemoryCommand : public CommandTest {
 protected:
  std::string Write(absl::string_view text) const { return WriteFile("job.yaml", text); }

  static CommandEnd Run(std::vector<std::string> flags) {
    return RunRegisteredCommand("memory", std::move(flags));
  }

  // The lines with what would fit, and what would not.
  static std::string ChangesIn(absl::string_view text) {
    std::string changes;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const bool is_change = absl::StartsWith(line, "smallest change") ||
                             absl::StartsWith(line, "or:  ") || absl::StartsWith(line, "tried in");
      if (is_change) absl::StrAppend(&changes, line, "\n");
    }
    return changes;
  }
};

TEST_F(MemoryCommand, AddsUpTheKindsOfEachStage) {
  const CommandEnd end = Run({Write(kSmallJob), "--format", "json"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  const auto json = nlohmann::json::parse(end.out);
  ASSERT_EQ(json["stages"].size(), 2u);
  int64_t all = 0;
  for (const auto& stage : json["stages"]) {
    int64_t sum = 0;
    for (const char* kind : {"parameters", "gradients", "optimizer", "weight_versions",
                             "activations", "boundary", "workspace", "communication", "slack"}) {
      sum += stage[kind].get<int64_t>();
    }
    EXPECT_EQ(stage["total"], sum);
    EXPECT_GT(stage["activations"], 0);
    EXPECT_EQ(stage["gradients"], stage["parameters"]);
    EXPECT_EQ(stage["live_microbatches"], 4);
    all += sum;
  }
  EXPECT_EQ(json["total_bytes"], all);
  EXPECT_EQ(json["max_bytes"], std::max(json["stages"][0]["total"], json["stages"][1]["total"]));
  EXPECT_EQ(json["min_bytes"], std::min(json["stages"][0]["total"], json["stages"][1]["total"]));
  EXPECT_EQ(json["fits"], true);
}

TEST_F(MemoryCommand, ShowsATableForPeople) {
  const CommandEnd end = Run({Write(kSmallJob)});
  EXPECT_THAT(end.out, HasSubstr("gpt, 6 layers, 0.221 million parameters; gpipe on 2 workers, 4 "
                                 "microbatches of 4, fp32, adamw\n"));
  EXPECT_THAT(end.out, HasSubstr("stage  layers  live  parameters  gradients  optimizer"));
  EXPECT_THAT(end.out, HasSubstr("activations from: saved tensors\n"));
  EXPECT_THAT(end.out, Not(HasSubstr("fits")));
}

TEST(ParameterCountText, SaysMillionsOrBillions) {
  EXPECT_EQ(ParameterCountText(221'000), "0.221 million parameters");
  EXPECT_EQ(ParameterCountText(999'400'000), "999 million parameters");
  EXPECT_EQ(ParameterCountText(999'600'000), "1 billion parameters");
  EXPECT_EQ(ParameterCountText(6'459'000'000), "6.46 billion parameters");
}

// Table II of MPress through the front door: 28.5 and 164.8 GB within 10 %, without data, a device
// of that size, or 16-bit training.
TEST_F(MemoryCommand, TakesJobsFarBeyondThisMachineWithoutTheirData) {
  const CommandEnd end = Run({Write(kLargeJob), "--accounting", "published", "--format", "json"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_NEAR(json["max_bytes"].get<double>(), 28.5e9, 2.85e9);
  EXPECT_NEAR(json["min_bytes"].get<double>(), 12.7e9, 1.27e9);
  EXPECT_NEAR(json["total_bytes"].get<double>(), 164.8e9, 16.48e9);
}

TEST_F(MemoryCommand, NeedsTheDataOrTheVocabulary) {
  const CommandEnd end = Run({Write(kLargeJob), "--set", "model.vocabulary=0"});
  EXPECT_EQ(end.code, kExitBadInput);
  EXPECT_THAT(end.err, HasSubstr("model.vocabulary: is not given, and the data does not tell"));
  EXPECT_THAT(end.err, HasSubstr("write the number of ids"));
}

TEST_F(MemoryCommand, SaysWhatFitsWhereTheJobDoesNot) {
  const std::string job = Write(kSmallJob);
  const auto whole = nlohmann::json::parse(Run({job, "--format", "json"}).out);
  const auto needed = whole["max_bytes"].get<int64_t>();
  const std::string capacity = "memory.capacity=" + std::to_string(needed - 1) + "B";
  const CommandEnd end = Run({job, "--set", capacity, "--set", "memory.strategy=keep"});
  EXPECT_EQ(end.code, kExitDoesNotFit);
  EXPECT_THAT(end.out, HasSubstr(" needs 1 B more than its "));
  EXPECT_THAT(end.out, HasSubstr("smallest change that fits: --set memory.strategy=auto  (all "
                                 "ways to save memory together; "));
  EXPECT_THAT(end.out, HasSubstr("or:  --set pipeline.schedule=1f1b"));
  EXPECT_THAT(end.out, HasSubstr("or:  --set train.microbatch=2"));
  EXPECT_THAT(end.out, HasSubstr("or:  --set memory.capacity="));

  const CommandEnd exact = Run({job, "--set", "memory.capacity=" + std::to_string(needed) + "B"});
  EXPECT_EQ(exact.code, kExitDone);
  EXPECT_THAT(exact.out, HasSubstr("fits: every worker stays within memory.capacity"));
}

// Line by line, whether a strategy is named or not.
TEST_F(MemoryCommand, NamesTheChangesThatThePlanNames) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  for (const std::string strategy : {"keep", "auto"}) {
    std::vector<std::string> flags = {job, "--set", "memory.strategy=" + strategy, "--set",
                                      "memory.capacity=20KiB"};
    const CommandEnd memory = Run(flags);
    const CommandEnd plan = RunRegisteredCommand("plan", flags);
    EXPECT_EQ(memory.code, kExitDoesNotFit);
    EXPECT_EQ(plan.code, kExitDoesNotFit);
    const std::string changes = ChangesIn(memory.out);
    EXPECT_THAT(changes, HasSubstr("smallest change that fits: --set "));
    EXPECT_EQ(changes, ChangesIn(plan.out));
  }
}

TEST_F(MemoryCommand, EveryChangeThatItSuggestsFits) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> tight = {job, "--set", "memory.capacity=5MB", "--set",
                                          "memory.strategy=keep"};
  std::vector<std::string> arguments = tight;
  arguments.insert(arguments.end(), {"--format", "json"});
  const CommandEnd end = Run(arguments);
  ASSERT_EQ(end.code, kExitDoesNotFit);
  const auto changes = nlohmann::json::parse(end.out)["changes"];
  ASSERT_GE(changes.size(), 2u);
  for (const auto& change : changes) {
    arguments = tight;
    std::string rest = change["set"];
    for (size_t next; (next = rest.find(" --set ")) != std::string::npos;) {
      arguments.insert(arguments.end(), {"--set", rest.substr(0, next)});
      rest = rest.substr(next + 7);
    }
    arguments.insert(arguments.end(), {"--set", rest});
    EXPECT_EQ(Run(arguments).code, kExitDone) << change;
  }
}

TEST_F(MemoryCommand, SaysWhichStrategyMakesRoom) {
  const std::vector<std::string> tight = {Write(kSmallJob), "--set", "memory.capacity=5MB"};
  const CommandEnd end = Run(tight);
  EXPECT_EQ(end.code, kExitDone);
  EXPECT_THAT(end.out, HasSubstr("with everything kept worker "));
  EXPECT_THAT(end.out, HasSubstr("; it fits with memory.strategy auto, siphon plan shows how\n"
                                 "to keep everything: --set "));
  std::vector<std::string> arguments = tight;
  arguments.insert(arguments.end(), {"--format", "json"});
  const auto json = nlohmann::json::parse(Run(arguments).out);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["fitting_strategy"], "auto");
}

TEST_F(MemoryCommand, ListsSavedTensorsOfAlikeLayersOnce) {
  const CommandEnd end = Run({Write(kSmallJob), "--layers"});
  EXPECT_THAT(end.out, HasSubstr("  transformer.h.0 .. transformer.h.1 (2 alike, each): "));
  EXPECT_THAT(end.out, HasSubstr("    attention.query_key_value"));
  EXPECT_THAT(end.out, HasSubstr("    loss.log_probabilities"));
}

TEST_F(MemoryCommand, CountsLessWithSixteenBitsAndMoreWithWrittenOutAttention) {
  const std::string job = Write(kSmallJob);
  const auto most = [&](const std::string& setting) {
    return nlohmann::json::parse(Run({job, "--format", "json", "--set", setting}).out)["max_bytes"]
        .get<int64_t>();
  };
  const int64_t plain = most("train.seed=1");
  EXPECT_LT(most("train.precision=bf16"), plain);
  EXPECT_LT(most("train.precision=fp16"), plain);
  // What products of bf16 matrices take beside; and of fp16 ones, where the processor has kernels.
  const bool tiles = MatrixKernelsHere() == MatrixKernels::kTiles;
  EXPECT_EQ(most("train.precision=fp16") > most("train.precision=bf16"), tiles);
  EXPECT_GT(most("model.flash_attention=false"), plain);
  EXPECT_GT(most("model.dropout=0.1"), most("model.flash_attention=false"));
}

TEST_F(MemoryCommand, PutsItsFiguresBesideThePapers) {
  const CommandEnd end = Run({"--report", "published"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  EXPECT_THAT(end.out, HasSubstr("126.2 / 140.1 (-9.9 %)"));  // GPT-25.5B, its largest stage
  EXPECT_THAT(end.out, HasSubstr("Where the paper contradicts itself:"));
  EXPECT_THAT(end.out, HasSubstr("with 384 a figure is off by 34 %"));
}

TEST_F(MemoryCommand, NeedsAJobOrAReport) {
  const CommandEnd end = Run({});
  EXPECT_EQ(end.code, kExitBadInput);
  EXPECT_THAT(end.err, HasSubstr("siphon memory JOB.yaml"));
}

// Its activations would be taken for those of layers that only stand at the same place.
TEST_F(MemoryCommand, RefusesAProfileOfAnotherModel) {
  ProfileFile profile;
  profile.model.model = "convolutions";
  profile.model.device = "A100";
  profile.model.source = "measured";
  profile.model.microbatch = 4;
  for (const char* name : {"embedding", "conv1", "conv2", "conv3", "conv4", "head"}) {
    profile.model.layers.push_back({.name = name});
  }
  const std::string path = WriteFile("other.yaml", WriteProfile(profile));
  const CommandEnd end = Run({Write(kSmallJob), "--profile", path});
  EXPECT_EQ(end.code, kExitBadInput);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err, "siphon: " + path +
                         ":8:5: layer 0 of the profile is 'embedding', of the model "
                         "'transformer.embeddings'; run siphon profile for this job\n");
}

}  // namespace
}  // namespace siphon
