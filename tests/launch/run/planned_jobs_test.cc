// What `siphon plan` decides for a job is what `siphon train` does with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/config/load_job_config.h"
#include "launch/config/read_text_file.h"
#include "launch/process/exit_codes.h"
#include "launch/run/job/prepare_job.h"
#include "launch/run/job_limits.h"
#include "pipeline/torch/memory/counting_allocator.h"
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
  std::string strategy;
  std::string schedule;
  std::string precision = "fp32";
};
std::string NameOf(const PlannedCase& planned) {
  return absl::StrCat(planned.strategy, "_", planned.schedule, "_", planned.precision);
}
void PrintTo(const PlannedCase& planned, std::ostream* out) { *out << NameOf(planned); }

class PlannedJobs : public CommandTest, public testing::WithParamInterface<PlannedCase> {
 protected:
  static void SetUpTestSuite() { InstallCountingAllocator(); }

  // What `siphon plan` says of the job, "key=value" each set in it; `more` flags.
  static CommandEnd Plan(const std::string& job, const std::vector<std::string>& settings,
                         std::vector<std::string> more) {
    more.insert(more.begin(), job);
    for (const std::string& setting : settings) more.insert(more.end(), {"--set", setting});
    return RunRegisteredCommand("plan", std::move(more));
  }
  // What the fullest worker takes if everything is kept.
  static int64_t MostKept(const std::string& job, const std::vector<std::string>& settings) {
    const CommandEnd end = Plan(job, settings, {"--strategy", "keep", "--format", "json"});
    EXPECT_EQ(end.code, kExitDone) << end.err;
    const auto peaks = nlohmann::json::parse(end.out)["peak_bytes"].get<std::vector<int64_t>>();
    return *std::max_element(peaks.begin(), peaks.end());
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
                                       absl::StrCat("train.precision=", GetParam().precision)};
  const int64_t most = MostKept(job, settings);
  settings.emplace_back();
  // The least of these hundredths of it that are enough.
  absl::StatusOr<PreparedJob> alone = absl::UnknownError("not prepared");
  for (int percent = 75; percent < 100 && !alone.ok(); percent += 6) {
    settings.back() = absl::StrCat("memory.capacity=", most / 100 * percent, "B");
    alone = Prepare(job, settings);
  }
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_FALSE(alone->plan.memory.stages.empty()) << "everything fits";
  const std::string file = absl::StrCat(directory_, "/plan.txt");
  const CommandEnd end = Plan(job, settings, {"--output", file});
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
  const CommandEnd again = Plan(job, settings, {});
  EXPECT_EQ(again.code, kExitDone) << again.out << again.err;
}

INSTANTIATE_TEST_SUITE_P(
    EachWay, PlannedJobs,
    testing::Values(PlannedCase{"auto", "1f1b"}, PlannedCase{"auto", "zbv"},
                    PlannedCase{"auto", "gpipe", "bf16"}, PlannedCase{"d2d_swap", "1f1b"},
                    PlannedCase{"host_swap", "interleaved_1f1b"}, PlannedCase{"recompute", "gpipe"},
                    PlannedCase{"mpress", "dapple"}, PlannedCase{"nvme_swap", "1f1b"},
                    PlannedCase{"optimizer_offload", "1f1b"},
                    PlannedCase{"weight_offload", "gpipe"}, PlannedCase{"l2l", "1f1b"},
                    PlannedCase{"vdnn", "1f1b"}, PlannedCase{"capacity_based", "1f1b"}),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace siphon
