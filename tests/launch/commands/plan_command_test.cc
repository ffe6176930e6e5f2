#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_report.h"
#include "launch/commands/plan_study.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/launch/commands/run_command.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(PlanCommand, KeepsEverythingWhereNothingLimitsMemory) {
  const json plan = Json({Write(kSmallJob)}, kExitDone);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_EQ(plan["strategy"], "auto");
  EXPECT_EQ(plan["mapping"], json::array({0, 1}));
  EXPECT_EQ(plan["partition"], json::array({3, 3}));
  EXPECT_EQ(plan["capacity_bytes"], json::array());
  EXPECT_EQ(plan["choices"]["recompute"], 0);
  EXPECT_EQ(plan["choices"]["d2d_swap"], 0);
  EXPECT_EQ(plan["choices"]["host_swap"], 0);
  EXPECT_GT(plan["choices"]["keep"], 0);
  EXPECT_EQ(plan["stripes"], json::array());
  EXPECT_EQ(plan["step_seconds"], plan["kept_step_seconds"]);
  EXPECT_GT(plan["lower_bound_seconds"], 0.0);
  EXPECT_LE(plan["lower_bound_seconds"], plan["step_seconds"]);
  EXPECT_GE(plan["gap"], 0.0);
  EXPECT_GE(plan["planning_seconds"], 0.0);
  // 32 sequences of 32.
  EXPECT_NEAR(plan["tokens_per_second"].get<double>() * plan["step_seconds"].get<double>(), 1024,
              1e-6);
  EXPECT_FALSE(plan.contains("smallest_fix"));
}

struct StrategyCase {
  std::string strategy;
  std::string choice;
};

void PrintTo(const StrategyCase& strategy, std::ostream* out) { *out << strategy.strategy; }

class PlanStrategy : public PlanCommand, public testing::WithParamInterface<StrategyCase> {};

// The plan file alone says all that the plan does.
TEST_P(PlanStrategy, FitsIntoLessAndSimulatesAsItSays) {
  const std::string job = Write(kSmallJob);
  const std::string file = absl::StrCat(directory_, "/plan.txt");
  const json plan =
      Json({job, "--strategy", GetParam().strategy, "--set", Capacity(job, 80), "--output", file},
           kExitDone);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_EQ(plan["strategy"], GetParam().strategy);
  EXPECT_GT(plan["choices"][GetParam().choice], 0);
  EXPECT_GE(plan["step_seconds"], plan["lower_bound_seconds"]);
  for (size_t worker = 0; worker < 2; ++worker) {
    EXPECT_LE(plan["peak_bytes"][worker], plan["capacity_bytes"][worker]);
  }
  const CommandEnd simulated =
      RunRegisteredCommand("simulate", {"--plan", file, "--format", "json"});
  ASSERT_EQ(simulated.code, kExitDone) << simulated.err;
  const json step = json::parse(simulated.out);
  EXPECT_EQ(step["step_seconds"], plan["step_seconds"]);
  EXPECT_EQ(step["peak_bytes"], plan["peak_bytes"]);
  EXPECT_EQ(step["choices"], plan["choices"]);
  EXPECT_EQ(step["mapping"], plan["mapping"]);
  EXPECT_EQ(step["lower_bound_seconds"], plan["lower_bound_seconds"]);
}

INSTANTIATE_TEST_SUITE_P(EachThatNeedsNoLender, PlanStrategy,
                         testing::Values(StrategyCase{"recompute", "recompute"},
                                         StrategyCase{"host_swap", "host_swap"}),
                         [](const auto& info) { return info.param.strategy; });

TEST_F(PlanCommand, ParksWhatOneWorkerLacksWithTheOther) {
  const std::string job = Write(kSmallJob);
  const auto kept = Json({job}, kExitDone)["peak_bytes"].get<std::vector<int64_t>>();
  const std::string capacity =
      absl::StrCat("memory.capacity=[", kept[0] * 8 / 10, "B, ", kept[1] * 2, "B]");
  const std::string file = absl::StrCat(directory_, "/plan.txt");
  const json plan =
      Json({job, "--strategy", "d2d_swap", "--set", capacity, "--output", file}, kExitDone);
  EXPECT_GT(plan["choices"]["d2d_swap"], 0);
  ASSERT_EQ(plan["stripes"].size(), 1u);
  EXPECT_EQ(plan["stripes"][0]["owner"], plan["mapping"][0]);
  EXPECT_EQ(plan["stripes"][0]["lender"], plan["mapping"][1]);
  EXPECT_EQ(plan["stripes"][0]["bytes"], plan["choices"]["d2d_swap"]);
  const CommandEnd simulated =
      RunRegisteredCommand("simulate", {"--plan", file, "--format", "json"});
  ASSERT_EQ(simulated.code, kExitDone) << simulated.err;
  EXPECT_EQ(json::parse(simulated.out)["step_seconds"], plan["step_seconds"]);
}

TEST_F(PlanCommand, AutoIsNoSlowerThanAnyOther) {
  const std::string job = Write(kSmallJob);
  const std::string capacity = Capacity(job, 80);
  const json best = Json({job, "--set", capacity}, kExitDone);
  for (const char* strategy : {"recompute", "host_swap"}) {
    const json other = Json({job, "--set", capacity, "--strategy", strategy}, kExitDone);
    EXPECT_LE(best["step_seconds"], other["step_seconds"]) << strategy;
  }
}

TEST_F(PlanCommand, EveryFixThatItNamesFits) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> tight = {job, "--set", Capacity(job, 60), "--set",
                                          "memory.strategy=keep"};
  const json plan = Json(tight, kExitDoesNotFit);
  EXPECT_EQ(plan["fits"], false);
  EXPECT_THAT(plan["reason"].get<std::string>(), HasSubstr("needs"));
  ASSERT_GE(plan["fixes"].size(), 4u) << plan["fixes"];
  EXPECT_EQ(plan["smallest_fix"], plan["fixes"][0]);
  for (const json& fix : plan["fixes"]) {
    std::vector<std::string> flags = tight;
    for (const std::string setting : fix["set"]) flags.insert(flags.end(), {"--set", setting});
    const json fixed = Json(flags, kExitDone);
    EXPECT_EQ(fixed["fits"], true) << fix;
    EXPECT_EQ(fixed["step_seconds"], fix["step_seconds"]) << fix;
  }
}

TEST_F(PlanCommand, SaysForPeopleWhatFits) {
  const std::string job = Write(kSmallJob);
  const CommandEnd end = Run({job, "--set", Capacity(job, 60), "--strategy", "keep"});
  EXPECT_EQ(end.code, kExitDoesNotFit);
  EXPECT_THAT(end.out, HasSubstr("does not fit: worker "));
  EXPECT_THAT(end.out, HasSubstr("smallest change that fits: --set memory.strategy=auto  (all ways "
                                 "to save memory together, in place of --strategy; "));
  EXPECT_THAT(end.out, HasSubstr("or:  --set pipeline.schedule=1f1b"));
  EXPECT_THAT(end.out, HasSubstr("or:  --set memory.capacity="));
}

TEST_F(PlanCommand, ShowsATableForPeople) {
  const std::string job = Write(kSmallJob);
  const CommandEnd end = Run({job, "--set", Capacity(job, 80), "--strategy", "recompute"});
  EXPECT_EQ(end.code, kExitDone);
  EXPECT_THAT(end.out, HasSubstr("gpt, 6 layers, "));
  EXPECT_THAT(end.out, HasSubstr("; gpipe on 2 workers, 8 microbatches of 4\n"
                                 "costs calculated for CPU cores as most are, 1 a worker\n"
                                 "fits: every worker stays within its capacity; strategy "
                                 "recompute\n"));
  EXPECT_THAT(end.out, HasSubstr("\nstep time         "));
  EXPECT_THAT(end.out, HasSubstr("\nlower bound       "));
  EXPECT_THAT(end.out, HasSubstr("\nlimited by        "));
  EXPECT_THAT(end.out, HasSubstr("worker  device  stages"));
}

TEST_F(PlanCommand, PutsPlansSideBySide) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job, "--what-if", "pipeline.schedule=1f1b", "--what-if",
                                          "train.microbatch=2"};
  const json plan = Json(flags, kExitDone);
  ASSERT_EQ(plan["what_if"].size(), 2u);
  EXPECT_EQ(plan["what_if"][0]["set"], "pipeline.schedule=1f1b");
  const json alone = Json({job, "--set", "pipeline.schedule=1f1b"}, kExitDone);
  EXPECT_EQ(plan["what_if"][0]["step_seconds"], alone["step_seconds"]);
  EXPECT_EQ(plan["what_if"][0]["peak_bytes"], alone["peak_bytes"]);
  EXPECT_LT(plan["what_if"][0]["peak_bytes"][1], plan["peak_bytes"][1]);
  const CommandEnd text = Run(flags);
  EXPECT_THAT(text.out, HasSubstr("as it is  pipeline.schedule=1f1b"));
  const CommandEnd wrong = Run({job, "--what-if", "pipeline.stagess=3"});
  EXPECT_EQ(wrong.code, kExitBadInput);
  EXPECT_THAT(wrong.err, HasSubstr("--what-if pipeline.stagess=3: "));
}

TEST_F(PlanCommand, ExplainsTheChoiceForEachTensorGroup) {
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job,          "--set",     Capacity(job, 80),
                                          "--strategy", "recompute", "--explain"};
  const json plan = Json(flags, kExitDone);
  ASSERT_EQ(plan["explain"].size(), 2u);
  int64_t recomputed = 0;
  for (const json& stage : plan["explain"]) {
    for (const json& group : stage["groups"]) {
      EXPECT_LE(group["shortest_gap_seconds"], group["longest_gap_seconds"]);
      EXPECT_NE(group["because"], "");
      if (group["choice"] != "recompute") continue;
      recomputed += group["bytes"].get<int64_t>() * group["goes"].get<int64_t>();
      EXPECT_GT(group["seconds_by_way"]["recompute"], 0.0);
    }
  }
  EXPECT_EQ(recomputed, plan["choices"]["recompute"]);
  const CommandEnd text = Run(flags);
  EXPECT_THAT(text.out, HasSubstr("stage 0 on worker 0, device 0: "));
  EXPECT_THAT(text.out, HasSubstr("computing them again takes "));
  EXPECT_THAT(text.out, HasSubstr("every microbatch needs them"));
  EXPECT_THAT(Run({job, "--strategy", "l2l", "--explain"}).out,
              HasSubstr("there only while a pass is at these layers"));
}

TEST_F(PlanCommand, SaysHowFarTheDeviceMapIsFromTheBestOne) {
  EXPECT_EQ(Json({Write(kSmallJob)}, kExitDone)["map_search"], json());
  const std::vector<std::string> flags = {Write(kServerJob), "--set", "memory.capacity=16GB",
                                          "--strategy", "mpress"};
  const json map = Json(flags, kExitDone)["map_search"];
  EXPECT_EQ(map["score"], "swap_time");
  EXPECT_LE(map["bound_seconds"], map["seconds"]);
  EXPECT_GE(map["evaluated"], 1);
  EXPECT_EQ(map["proven"], true) << map;
  EXPECT_THAT(Run(flags).out, Not(HasSubstr("device map")));
  std::vector<std::string> explained = flags;
  explained.emplace_back("--explain");
  EXPECT_THAT(Run(explained).out, HasSubstr(absl::StrCat("\ndevice map        ",
                                                         map["text"].get<std::string>(), "\n")));
}

// What no plan beats, no map does.
TEST_F(PlanCommand, TakesTheBoundOfAllPlansForMaps) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const json plan =
      Json({Write(kServerJob), "--set", "memory.capacity=16GB", "--strategy", "auto"}, kExitDone);
  const json& map = plan["map_search"];
  EXPECT_EQ(map["score"], "step_time");
  EXPECT_EQ(map["missing_bytes"], 0);
  EXPECT_GE(map["bound_seconds"], std::min(map["seconds"], plan["lower_bound_seconds"]));
  EXPECT_LE(map["bound_seconds"], map["seconds"]);
  EXPECT_EQ(map["proven"], map["seconds"] == map["bound_seconds"]) << map;
}

TEST_F(PlanCommand, WritesAPageThatLoadsNothing) {
  const std::string job = Write(kSmallJob);
  const CommandEnd end =
      Run({job, "--set", Capacity(job, 80), "--report", absl::StrCat(directory_, "/plan.html")});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  const std::string page = FileText("plan.html");
  EXPECT_THAT(page, HasSubstr("links, and what is parked over them"));
  EXPECT_THAT(page, HasSubstr("planned step"));
  EXPECT_THAT(page, HasSubstr("with everything kept"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

TEST_F(PlanCommand, TakesSpeedMemoryAndLinksFromAPreset) {
  const json plan = Json({Write(kServerJob), "--strategy", "recompute"}, kExitDone);
  EXPECT_EQ(plan["costs"], "calculated for V100-32");
  ASSERT_EQ(plan["capacity_bytes"].size(), 8u);
  EXPECT_EQ(plan["capacity_bytes"][0], int64_t{32} << 30);
  const json less = Json(
      {Write(kServerJob), "--strategy", "recompute", "--set", "memory.reserve=1GiB"}, kExitDone);
  EXPECT_EQ(less["capacity_bytes"][7], int64_t{31} << 30);
}

TEST_F(PlanCommand, ShowsWhichStagesShareAServer) {
  const std::string job = Write(kServerJob);
  const std::vector<std::string> arguments = {job,
                                              "--strategy",
                                              "recompute",
                                              "--set",
                                              "topology.servers=2",
                                              "--set",
                                              "topology.network_rate=25GB/s"};
  const CommandEnd end = Run(arguments);
  EXPECT_EQ(end.code, kExitDone) << end.err;
  EXPECT_THAT(end.out, HasSubstr("on 2 x NVIDIA DGX-1"));
  EXPECT_THAT(end.out, HasSubstr("worker  server  device  stages"));
  const json plan = Json(arguments, kExitDone);
  EXPECT_EQ(plan["mapping"].size(), 8u);
}

// Both find a map on which the step is as short; only one looks for the first such map.
TEST_F(PlanCommand, TakesTheScoreOfMaps) {
  const std::string job = Write(kServerJob);
  const auto planned = [&](absl::string_view score) {
    return Json({job, "--set", "memory.capacity=24GiB", "--set",
                 absl::StrCat("topology.map_score=", score)},
                kExitDone);
  };
  const json by_step = planned("step_time");
  const json by_swap = planned("swap_time");
  EXPECT_EQ(by_step["step_seconds"], by_swap["step_seconds"]);
  EXPECT_LT(by_step["mapping"], by_swap["mapping"]);
  const CommandEnd unknown = Run({job, "--set", "topology.map_score=links"});
  EXPECT_EQ(unknown.code, kExitBadInput);
  EXPECT_THAT(unknown.err, HasSubstr("step_time"));
  EXPECT_THAT(unknown.err, HasSubstr("swap_time"));
}

// Harmony makes stages and schedule too: the plan is of the job with these settings.
TEST_F(PlanCommand, PlansStagesAndScheduleForHarmony) {
  const std::string job = Write(kSmallJob);
  const std::string file = directory_ + "/harmony.txt";
  const std::string capacity = Capacity(job, 70);
  const json plan =
      Json({job, "--set", capacity, "--strategy", "harmony", "--output", file}, kExitDone);
  EXPECT_EQ(plan["strategy"], "harmony");
  EXPECT_THAT(plan["settings"].get<std::vector<std::string>>(),
              testing::IsSupersetOf({"pipeline.schedule=harmony_pp", "train.clip_norm=0"}));
  EXPECT_GT(plan["choices"]["host_swap"], 0);
  EXPECT_LE(plan["lower_bound_seconds"], plan["step_seconds"]);
  const CommandEnd simulated =
      RunRegisteredCommand("simulate", {"--plan", file, "--format", "json"});
  ASSERT_EQ(simulated.code, kExitDone) << simulated.err;
  EXPECT_EQ(json::parse(simulated.out)["step_seconds"], plan["step_seconds"]);
  std::vector<std::string> kept = {job, "--strategy", "keep"};
  for (const auto& setting : plan["settings"]) {
    kept.insert(kept.end(), {"--set", setting.get<std::string>()});
  }
  EXPECT_EQ(Json(kept, kExitDone)["step_seconds"], plan["kept_step_seconds"]);
}

// Weights that leave for every microbatch may be slow for their schedule: Harmony's is tried then.
TEST_F(PlanCommand, TriesAnotherScheduleWhereTheJobsMayBeWhatIsSlow) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(R"(
model: {kind: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 1000, tie_embeddings: false}
data: {kind: tokens, path: /nowhere, sequence_length: 512}
train: {global_batch: 16, microbatch: 1, precision: fp16}
pipeline: {stages: 2, schedule: dapple, backend: cuda}
topology: {name: v100x4_nv2}
)");
  const auto studied = [&](const std::string& strategy, const std::string& capacity) {
    auto plan = StudyPlan(
        {.job = {.job = job, .overrides = {"memory.capacity=" + capacity}}, .strategy = strategy});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  };
  const StudiedPlan ample = studied("auto", "12GiB");
  EXPECT_FALSE(MayBeSlowForItsSchedule(ample));
  const StudiedPlan tight = studied("auto", "1450MiB");
  EXPECT_TRUE(MayBeSlowForItsSchedule(tight));
  const StudiedPlan harmony = studied("harmony", "1450MiB");
  EXPECT_FALSE(MayBeSlowForItsSchedule(harmony));
  // Tried, and not faster.
  EXPECT_GT(harmony.step->step_time, tight.step->step_time);
  EXPECT_EQ(Json({job, "--set", "memory.capacity=1450MiB"}, kExitDone)["faster"], json());

  const PlanReport report{.plan = tight, .faster = harmony};
  EXPECT_THAT(PlanReportText(report),
              HasSubstr(absl::StrCat("\nfaster            ", FormatNanos(harmony.step->step_time),
                                     "  with --strategy harmony, which changes the job: "
                                     "--set pipeline.schedule=harmony_pp --set ")));
  EXPECT_EQ(json::parse(PlanReportJson(report))["faster"]["strategy"], "harmony");
}

TEST_F(PlanCommand, NamesWhatTheInputLacks) {
  const std::string job = Write(kSmallJob);
  const auto error = [&](const std::vector<std::string>& flags) {
    const CommandEnd end = Run(flags);
    EXPECT_EQ(end.code, kExitBadInput) << end.out;
    return end.err;
  };
  EXPECT_EQ(Run({}).code, kExitBadInput);
  EXPECT_THAT(error({job, "--strategy", "hope"}),
              HasSubstr("no memory strategy is called 'hope'; there are keep, recompute"));
  EXPECT_THAT(error({job, "--strategy", "hope"}),
              HasSubstr("weight_offload, l2l, mpress, auto, harmony"));
  EXPECT_THAT(error({job, "--set", "memory.strategy=hope"}),
              HasSubstr("--set memory.strategy: 'hope' is not known"));
  EXPECT_THAT(error({job, "--set", "pipeline.backend=cuda"}),
              HasSubstr("pipeline.backend: cuda, but nothing says which devices; write "
                        "topology.source: probe, which measures this machine's, or "
                        "topology.name, or give --device (GTX-1080Ti"));
  EXPECT_THAT(
      error({job, "--set", "pipeline.backend=cuda", "--device", "A100", "--strategy", "d2d_swap"}),
      HasSubstr("topology.name: is missing; d2d_swap needs to know the links"));
  EXPECT_THAT(error({job, "--set", "topology.name=dgx1_v100", "--strategy", "nvme_swap"}),
              StartsWith("siphon: nvme_swap needs an NVMe drive, but topology dgx1_v100 "
                         "has none; write memory.nvme_directory"));
  EXPECT_THAT(error({Write(absl::StrCat(kSmallJob, "topology: {name: dgx1_v100}\n",
                                        "memory: {strategy: nvme_swap}\n"))}),
              HasSubstr("job.yaml:7:20: memory.strategy: nvme_swap needs an NVMe drive"));
  Write(kSmallJob);
  const std::string server =
      WriteFile("server.yaml",
                "name: a server\ndevice: Voodoo\ndevices: 4\ndevice_memory: 12MiB\nswitches:\n"
                "  - {devices: [0, 1, 2, 3], to_host: 12GB/s, from_host: 12GB/s}\n");
  EXPECT_THAT(error({job, "--set", "topology.name=" + server}),
              HasSubstr("; a file is read with topology.source: file\n"));
  EXPECT_THAT(error({job, "--set", "topology.source=file", "--set", "topology.name=" + server}),
              HasSubstr("has devices of kind 'Voodoo', whose speed is not known"));
  EXPECT_THAT(error({Write(kServerJob), "--set", "topology.name=v100x4_nv2"}),
              HasSubstr("devices for 8 workers; plan for fewer pipeline.stages"));
}

// The plan that was written, looked at again: the same step; and not that of another job.
TEST_F(PlanCommand, FollowsAPlanFile) {
  const std::string job = Write(kSmallJob);
  const std::string capacity = Capacity(job, 80);
  const std::string file = WriteFile("plan.txt", "");
  const json written = Json({job, "--set", capacity, "--output", file}, kExitDone);
  const json followed = Json({job, "--set", capacity, "--set", "memory.plan=" + file}, kExitDone);
  EXPECT_EQ(followed["step_seconds"], written["step_seconds"]);
  EXPECT_EQ(followed["peak_bytes"], written["peak_bytes"]);
  EXPECT_EQ(followed["choices"], written["choices"]);
  EXPECT_EQ(followed["strategy"], "auto");
  // With other strategies it is planned again, with less memory it does not fit.
  const json other = Json({job, "--set", "memory.plan=" + file, "--strategy", "keep"}, kExitDone);
  EXPECT_EQ(other["strategy"], "keep");
  const json less =
      Json({job, "--set", Capacity(job, 60), "--set", "memory.plan=" + file}, kExitDoesNotFit);
  EXPECT_EQ(less["fits"], false);
  const CommandEnd refused =
      Run({job, "--set", "memory.plan=" + file, "--set", "train.microbatch=2"});
  EXPECT_EQ(refused.code, kExitBadInput);
  EXPECT_THAT(refused.err, testing::ContainsRegex("plan.txt:[0-9]+:[0-9]+: microbatch is 4, the "
                                                  "job's is 2; plan this job again"));
}

}  // namespace
}  // namespace siphon
