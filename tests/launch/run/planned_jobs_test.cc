// What `siphon plan` decides for a job is what `siphon train` does with it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/config/read_text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/run/job_limits.h"
#include "launch/run/prepare_job.h"
#include "pipeline/torch/counting_allocator.h"
#include "planner/plan_text.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

constexpr char kJob[] = R"(
model: {kind: gpt, layers: 6, hidden: 32, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 32}
train: {global_batch: 24, microbatch: 4, steps: 2}
pipeline: {stages: 4}
)";

struct PlannedCase {
  const char* strategy;
  const char* schedule;
  const char* more = "train.seed=1";
};

class PlannedJobs : public CommandTest, public testing::WithParamInterface<PlannedCase> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }

  // "--set KEY=VALUE" for each.
  static std::vector<std::string> Flags(const std::vector<std::string>& settings) {
    std::vector<std::string> flags;
    for (const std::string& setting : settings) flags.insert(flags.end(), {"--set", setting});
    return flags;
  }
  // As `siphon train` prepares the job.
  static absl::StatusOr<PreparedJob> Prepare(const std::string& job,
                                             const std::vector<std::string>& settings) {
    const auto config = LoadJobConfig(job, settings, MachineLimits(ModelSource::kJobFile));
    if (!config.ok()) return config.status();
    return PrepareJob(*config, {});
  }
};

TEST_P(PlannedJobs, AreTrainedAsPlanned) {
  const std::string job = WriteFile("job.yaml", kJob);
  std::vector<std::string> settings = {absl::StrCat("memory.strategy=", GetParam().strategy),
                                       absl::StrCat("pipeline.schedule=", GetParam().schedule),
                                       GetParam().more, "memory.capacity=1B"};
  // The least hundredths of what everything takes that are enough.
  absl::StatusOr<PreparedJob> alone;
  for (const int kilobytes : {400, 450, 500, 560, 620, 700, 800, 900}) {
    settings.back() = absl::StrCat("memory.capacity=", kilobytes, "KiB");
    alone = Prepare(job, settings);
    if (alone.ok()) break;
  }
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_FALSE(alone->plan.memory.stages.empty()) << "everything fits";
  const std::string file = absl::StrCat(directory_, "/plan.txt");
  std::vector<std::string> flags = Flags(settings);
  flags.insert(flags.end(), {job, "--output", file});
  const CommandEnd end = RunRegisteredCommand("plan", flags);
  ASSERT_EQ(end.code, kExitDone) << end.out << end.err;
  const PlanText planned = ParsePlanText(ReadTextFile(file, "plan").value()).value();
  EXPECT_EQ(planned.memory, alone->plan.memory);
  EXPECT_EQ(planned.training, alone->plan_text.training);
  EXPECT_EQ(planned.mapping, alone->plan_text.mapping);
  EXPECT_EQ(planned.workers, alone->plan_text.workers);
  EXPECT_EQ(planned.predicted.step_time, alone->plan_text.predicted.step_time);
  settings.push_back(absl::StrCat("memory.plan=", file));
  const auto following = Prepare(job, settings);
  ASSERT_TRUE(following.ok()) << following.status();
  EXPECT_EQ(following->plan.memory, planned.memory);
  EXPECT_EQ(following->plan.training, planned.training);
  // And the command looks at the file as at its own plan.
  const CommandEnd again = RunRegisteredCommand(
      "plan", {job, "--set", settings[1], "--set", settings[2], "--set", settings[3], "--set",
               settings[4], "--format", "json"});
  EXPECT_EQ(again.code, kExitDone) << again.out << again.err;
}

INSTANTIATE_TEST_SUITE_P(
    EachWay, PlannedJobs,
    testing::Values(PlannedCase{"auto", "1f1b"}, PlannedCase{"auto", "zbv"},
                    PlannedCase{"auto", "gpipe", "train.precision=bf16"},
                    PlannedCase{"d2d_swap", "1f1b"}, PlannedCase{"host_swap", "interleaved"},
                    PlannedCase{"recompute", "gpipe"}, PlannedCase{"mpress", "dapple"},
                    PlannedCase{"nvme_swap", "1f1b"}, PlannedCase{"optimizer_offload", "1f1b"},
                    PlannedCase{"weight_offload", "gpipe"}, PlannedCase{"l2l", "1f1b"},
                    PlannedCase{"vdnn", "1f1b"}, PlannedCase{"capacity_based", "1f1b"}),
    [](const auto& info) { return absl::StrCat(info.param.strategy, "_", info.index); });

}  // namespace
}  // namespace siphon
