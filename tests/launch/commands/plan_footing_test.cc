#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "launch/commands/plan_study.h"
#include "launch/config/read_text_file.h"
#include "planner/strategies/memory_strategy.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::Contains;

// CPU workers whose links are held to a thousandth of those of a DGX-1.
constexpr char kThrottledJob[] = R"(
model: {kind: gpt, layers: 8, hidden: 64, heads: 4, vocabulary: 300}
data: {kind: synthetic, sequence_length: 64}
train: {global_batch: 16, microbatch: 2}
pipeline: {stages: 4}
topology: {name: dgx1_v100, throttle: 0.001}
)";

class PlansOnOneFooting : public PlanCommand, public testing::WithParamInterface<const char*> {
 protected:
  json Plan(const std::string& capacity, const std::string& strategy) {
    const CommandEnd end =
        Run({job_, "--set", capacity, "--strategy", strategy, "--format", "json"});
    return json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  }

  const std::string job_ = Write(GetParam());
};

// Whatever the strategy is and whether it fits: the same costs, bound and step that keeps all.
TEST_P(PlansOnOneFooting, SoThatNoStrategyIsBelowTheBoundOrBeatsAuto) {
  const std::string capacity = Capacity(job_, 80);
  const json best = Plan(capacity, "auto");
  ASSERT_EQ(best["fits"], true);
  for (const MemoryStrategy& strategy : MemoryStrategies()) {
    const json plan = Plan(capacity, std::string(strategy.name));
    EXPECT_EQ(plan["costs"], best["costs"]) << strategy.name;
    EXPECT_EQ(plan["kept_step_seconds"], best["kept_step_seconds"]) << strategy.name;
    if (strategy.name != "nvme_swap") {  // has a drive for itself
      EXPECT_EQ(plan["lower_bound_seconds"], best["lower_bound_seconds"]) << strategy.name;
    }
    if (plan["fits"] != true) continue;
    EXPECT_LE(plan["lower_bound_seconds"], plan["step_seconds"]) << strategy.name;
    EXPECT_LE(best["step_seconds"], plan["step_seconds"]) << strategy.name;
  }
}

// The kept step of a job is the same whether it has room for it or not.
TEST_P(PlansOnOneFooting, WhereEverythingFitsToo) {
  const json fits = Plan("memory.capacity=1GB", "auto");
  const json less = Plan(Capacity(job_, 80), "auto");
  EXPECT_EQ(fits["costs"], less["costs"]);
  EXPECT_EQ(fits["kept_step_seconds"], less["kept_step_seconds"]);
  EXPECT_LE(fits["step_seconds"], fits["kept_step_seconds"]);  // on a better map, it may be
  EXPECT_LE(fits["lower_bound_seconds"], less["lower_bound_seconds"]);
}

// Of the second, on a server with lenders, the plans take a minute under a sanitizer.
INSTANTIATE_TEST_SUITE_P(Jobs, PlansOnOneFooting,
                         testing::ValuesIn(kSanitized ? std::vector<const char*>{kSmallJob}
                                                      : std::vector<const char*>{kSmallJob,
                                                                                 kThrottledJob}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "OneMachine" : "HeldToATopology");
                         });

// No device of the server has it: none of what is planned would be there.
TEST_F(PlanCommand, RefusesACapacityThatNoDeviceOfTheServerHas) {
  const std::string job = Write(kServerJob);
  const std::string error =
      "--set memory.capacity: 298 GiB is more than the 32.0 GiB of a device of NVIDIA DGX-1 "
      "(V100-SXM2), hybrid cube mesh; write at most that, or a topology.name with larger devices\n";
  const CommandEnd set = Run({job, "--set", "memory.capacity=320GB"});
  EXPECT_EQ(set.code, kExitBadInput);
  EXPECT_EQ(set.err, "siphon: " + error);
  const CommandEnd what_if =
      Run({job, "--strategy", "recompute", "--what-if", "memory.capacity=320GB"});
  EXPECT_EQ(what_if.code, kExitBadInput);
  EXPECT_EQ(what_if.err, "siphon: --what-if memory.capacity=320GB: " + error);
  const json all =
      Json({job, "--strategy", "recompute", "--set", "memory.capacity=32GiB"}, kExitDone);
  EXPECT_EQ(all["remark"], json());
}

// Workers that may be elsewhere: on CPUs, or on other devices.
TEST_F(PlanCommand, TakesACapacityThatWorkersMayHaveElsewhere) {
  const std::string more = "memory.capacity=64GiB";
  const json workers = Json({Write(kThrottledJob), "--set", more}, kExitDone);
  EXPECT_EQ(workers["capacity_bytes"][0], int64_t{64} << 30);
  EXPECT_EQ(workers["remark"], json());
  const std::string remark =
      "planned as if devices had memory.capacity, 64.0 GiB: the largest there has 32.0 GiB";
  const std::vector<std::string> on_server = {
      Write(kThrottledJob), "--set", "topology.throttle=none", "--set", more, "--strategy", "keep"};
  EXPECT_EQ(Json(on_server, kExitDone)["remark"], remark);
  EXPECT_THAT(Run(on_server).out, testing::HasSubstr("\n" + remark + "\nfits: "));
  EXPECT_EQ(Json({Write(kServerJob), "--device", "H100", "--set", more, "--strategy", "keep"},
                 kExitDone)["remark"],
            remark);
}

// Of a job that runs on CPUs, and is looked at as if it ran on the server.
TEST_F(PlanCommand, TakesTheServersDevicesWhereNothingHoldsWorkersToItsLinks) {
  const std::string job = Write(kThrottledJob);
  const json workers = Json({job, "--strategy", "keep"}, kExitDone);
  EXPECT_EQ(workers["costs"], "calculated for CPU cores as most are, 1 a worker");
  const json server =
      Json({job, "--strategy", "keep", "--set", "topology.throttle=none"}, kExitDone);
  EXPECT_EQ(server["costs"], "calculated for V100-32");
}

// Workers keep one version of weights: of such a job no plan for them is made, with what they
// cannot park.
TEST_F(PlanCommand, PlansAsynchronousSchedulesForDevices) {
  const std::vector<std::string> asynchronous = {
      Write(kSmallJob), "--set", "pipeline.schedule=pipedream", "--set", "train.clip_norm=0"};
  const json kept = Json(asynchronous, kExitDone);
  const auto peaks = kept["peak_bytes"].get<std::vector<int64_t>>();
  std::vector<std::string> less = asynchronous;
  less.insert(less.end(), {"--set", absl::StrCat("memory.capacity=", peaks[0] * 9 / 10, "B")});
  const json plan = Json(less, kExitDone);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_GT(plan["choices"]["host_swap"].get<int64_t>() +
                plan["choices"]["recompute"].get<int64_t>() +
                plan["choices"]["d2d_swap"].get<int64_t>(),
            0);
}

// Workers that keep everything hold a boundary more than a problem says whose tensors may move:
// what `siphon memory` and `siphon train` refuse, a plan does not say to fit.
TEST_F(PlanCommand, KeepsEverythingOnlyWhereWorkersHaveRoomForIt) {
  const std::string job = Write(kSmallJob);
  const CommandEnd memory = RunRegisteredCommand("memory", {job, "--format", "json"});
  const auto needed = json::parse(memory.out)["max_bytes"].get<int64_t>();
  const auto code = [&](int64_t capacity) {
    return Run({job, "--strategy", "keep", "--set",
                absl::StrCat("memory.capacity=", capacity, "B")})
        .code;
  };
  EXPECT_EQ(code(needed), kExitDone);
  EXPECT_EQ(code(needed - 1), kExitDoesNotFit);
}

// The drive that workers park on is as fast as the topology's, times its throttle.
TEST_F(PlanCommand, TakesTheTopologysDriveForWorkers) {
  const std::string job = Write(R"(
model: {kind: mlp, layers: 4, hidden: 64, vocabulary: 64}
data: {kind: synthetic, samples: 64, sequence_length: 16, validation_fraction: 0}
train: {steps: 2, global_batch: 8, microbatch: 1}
pipeline: {schedule: gpipe}
memory: {strategy: nvme_swap, capacity: 420KiB, nvme_directory: /nowhere}
topology: {name: dgx1_v100_nvme, throttle: 0.001}
)");
  const std::string plan = WriteFile("plan.txt", "");
  EXPECT_EQ(Run({job, "--output", plan}).code, kExitDone);
  const absl::StatusOr<std::string> text = ReadTextFile(plan, "plan");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::HasSubstr("read 3MB/s, write 1.5MB/s"));
}

// Whoever waits hears what is being done, of workers of this machine as of a server's devices.
TEST_F(PlanCommand, TellsHowASearchGoesOnOnEitherFooting) {
  const std::string job = Write(kSmallJob);
  for (const std::string& topology : {std::string(), std::string("topology.name=dgx1_v100")}) {
    PlanRequest request{.job = {.job = job, .overrides = {Capacity(job, 80)}}, .strategy = "auto"};
    if (!topology.empty()) {
      request.job.overrides.insert(request.job.overrides.end(),
                                   {topology, "pipeline.backend=cuda"});
    }
    std::vector<std::string> told;
    request.news = [&told](absl::string_view doing, Nanos) { told.emplace_back(doing); };
    const auto studied = StudyPlan(request);
    ASSERT_TRUE(studied.ok()) << studied.status();
    EXPECT_THAT(told, Contains("improving the best start")) << topology;
    EXPECT_EQ(studied->problem.news, nullptr);
  }
}

// What a short search finds is not what train would look for.
TEST_F(PlanCommand, SearchesBrieflyOnEitherFootingWhereAskedTo) {
  const std::string job = Write(kSmallJob);
  for (const bool on_server : {false, true}) {
    PlanRequest request{.job = {.job = job, .overrides = {Capacity(job, 80)}}, .strategy = "auto"};
    request.job.overrides.push_back("memory.strategy=auto");
    if (on_server) {
      request.job.overrides.insert(request.job.overrides.end(),
                                   {"topology.name=dgx1_v100", "pipeline.backend=cuda"});
    }
    const auto long_search = StudyPlan(request);
    ASSERT_TRUE(long_search.ok()) << long_search.status();
    EXPECT_EQ(long_search->problem.effort, 1);
    EXPECT_EQ(long_search->is_of_train, !on_server);
    request.quick = true;
    const auto studied = StudyPlan(request);
    ASSERT_TRUE(studied.ok()) << studied.status();
    EXPECT_EQ(studied->problem.effort, kLeastEffort);
    EXPECT_FALSE(studied->is_of_train);
    ASSERT_EQ(studied->step.has_value(), long_search->step.has_value());
    ASSERT_TRUE(on_server || studied->step.has_value()) << studied->misfit;
    if (!studied->step.has_value()) continue;
    EXPECT_GE(studied->step->step_time, long_search->step->step_time);
  }
}

}  // namespace
}  // namespace siphon
