#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launch/commands/plan_fixes.h"
#include "launch/commands/try_fix.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

class PlanFixes : public PlanCommand {
 protected:
  // Of the fix that sets the key.
  static std::string SettingOf(const json& plan, const std::string& key) {
    for (const json& fix : plan["fixes"]) {
      const auto setting = fix["set"][0].get<std::string>();
      if (setting.starts_with(key + "=")) return setting;
    }
    ADD_FAILURE() << "no fix sets " << key << ": " << plan["fixes"];
    return "";
  }

  static void ExpectPlansWithFixes(const std::vector<std::string>& flags) {
    const json plan = Json(flags, kExitDoesNotFit);
    EXPECT_FALSE(plan["fixes"].empty()) << plan;
    for (const json& fix : plan["fixes"]) {
      std::vector<std::string> fixed = flags;
      for (const json& setting : fix["set"]) {
        fixed.insert(fixed.end(), {"--set", setting.get<std::string>()});
      }
      const auto step = Json(fixed, kExitDone)["step_seconds"].get<double>();
      const auto at_most = fix["step_seconds"].get<double>();
      EXPECT_LE(step, at_most) << fix;
      EXPECT_GT(step, at_most * 0.95) << fix;
    }
  }
};

// 1.5 % less does not fit.
TEST_F(PlanFixes, NameTheLeastCapacity) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  const json plan =
      Json({job, "--set", Capacity(job, 30), "--strategy", "recompute"}, kExitDoesNotFit);
  const std::string setting = SettingOf(plan, "memory.capacity");
  int kibibytes = 0;
  ASSERT_EQ(std::sscanf(setting.c_str(), "memory.capacity=%dKiB", &kibibytes), 1) << setting;
  const auto with = [&](int size) {
    return Run({job, "--strategy", "recompute", "--set",
                absl::StrCat("memory.capacity=", size, "KiB")})
        .code;
  };
  EXPECT_EQ(with(kibibytes), kExitDone);
  EXPECT_EQ(with(kibibytes * 985 / 1000), kExitDoesNotFit);
}

// Whether a change fits is looked for without a good plan, but that is what is shown of it.
TEST_F(PlanFixes, ArePlannedAsTheJobWithThem) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  ExpectPlansWithFixes({Write(kServerJob), "--set", "model.layers=4", "--set", "pipeline.stages=2",
                        "--set", "train.global_batch=8", "--set", "memory.capacity=2500MiB"});
}

TEST_F(PlanFixes, ArePlannedAsTheJobWithThemForWorkersOfThisMachine) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  ExpectPlansWithFixes({Write(kSmallJob), "--set", "model.layers=2", "--set",
                        "train.global_batch=8", "--set", "memory.strategy=auto", "--set",
                        "memory.capacity=1800KiB"});
}

TEST_F(PlanFixes, ChangeOnlyWorkersThatLackMemory) {
  const std::string job = Write(kSmallJob);
  const json kept = Json({job}, kExitDone);
  const int64_t least = kept["peak_bytes"][0].get<int64_t>() / 2;
  const json plan = Json(
      {job, "--strategy", "keep", "--set", absl::StrCat("memory.capacity=[", least, "B,20MiB]")},
      kExitDoesNotFit);
  const std::string setting = SettingOf(plan, "memory.capacity");
  EXPECT_THAT(setting, HasSubstr("KiB,20MiB]"));
  EXPECT_EQ(Run({job, "--strategy", "keep", "--set", setting}).code, kExitDone);
}

// A host that can hold next to nothing, for a strategy that parks everything there.
TEST_F(PlanFixes, NameTheHostThatBinds) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {
      job,         "--set", Capacity(job, 80),         "--strategy",
      "host_swap", "--set", "memory.host_capacity=1kB"};
  const json plan = Json(flags, kExitDoesNotFit);
  EXPECT_THAT(plan["reason"].get<std::string>(),
              HasSubstr("what binds is the host, which may hold 1000 B (memory.host_capacity)"));
  std::vector<std::string> more = flags;
  more.insert(more.end(), {"--set", SettingOf(plan, "memory.host_capacity")});
  EXPECT_EQ(Run(more).code, kExitDone);
  EXPECT_THAT(Run(flags).out, HasSubstr(" on the host)"));
}

// What one strategy cannot do with a change, all together may with a smaller one.
TEST_F(PlanFixes, AreSmallerWithAllStrategiesWhereTheseAloneAreNotEnough) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  const std::vector<std::string> flags = {job, "--set", "memory.strategy=d2d_swap", "--set",
                                          "memory.capacity=500KiB"};
  const json plan = Json(flags, kExitDoesNotFit);
  EXPECT_THAT(plan["tried_in_vain"], testing::Contains(json::array({"memory.strategy=auto"})));
  const auto size_of = [](const json& fix) {
    int kibibytes = 0;
    const auto setting = fix["set"].back().get<std::string>();
    std::sscanf(setting.c_str(), "memory.capacity=%dKiB", &kibibytes);
    return kibibytes;
  };
  std::vector<int> sizes;  // with all strategies, then with its own
  for (const json& fix : plan["fixes"]) {
    if (size_of(fix) == 0) continue;
    sizes.push_back(size_of(fix));
    EXPECT_EQ(fix["set"][0] == "memory.strategy=auto", sizes.size() == 1) << fix;
  }
  ASSERT_EQ(sizes.size(), 2u) << plan["fixes"];
  EXPECT_LT(sizes[0], sizes[1] * 3 / 4);
  ExpectPlansWithFixes(flags);
  const std::string text = Run(flags).out;
  EXPECT_THAT(text, HasSubstr("\ntried in vain: memory.strategy=auto, "));
  EXPECT_THAT(text, HasSubstr(", with all ways to save memory together; "));
}

TEST_F(PlanFixes, SayWhatWasTriedInVain) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  const json plan = Json({job, "--set", "memory.strategy=auto", "--set", "memory.capacity=20KiB"},
                         kExitDoesNotFit);
  const json& in_vain = plan["tried_in_vain"];
  for (const char* one : {"pipeline.schedule=1f1b", "train.microbatch=1", "train.optimizer=sgd"}) {
    EXPECT_THAT(in_vain, testing::Contains(json::array({one}))) << in_vain;
  }
  EXPECT_THAT(in_vain, testing::Contains(json::array({"train.microbatch=1", "pipeline.stages=6"})));
  EXPECT_EQ(InVainText({{"a=1"}, {"a=1", "b=2", "c=3"}}), "a=1, a=1 with b=2 and c=3");
}

TEST(NeededByMisfit, IsWhatASearchSaysOfItsBestPlan) {
  EXPECT_EQ(NeededByMisfit("worker 7 needs 4.50 GiB at its fullest under auto, its capacity is "
                           "2.79 GiB"),
            Bytes(int64_t{4608} << 20));
  EXPECT_EQ(NeededByMisfit("worker 1 needs 354 MiB under any plan, its capacity is 106 MiB"),
            Bytes(0));
  EXPECT_EQ(NeededByMisfit("the job does not fit: worker 1 needs 8.11 MiB at its peak, "
                           "memory.capacity is 8.11 MiB, 1 B short"),
            ParseBytes("8.11 MiB").value());
  EXPECT_EQ(NeededByMisfit(""), Bytes(0));
}

// dualpipev takes no fewer microbatches than stages, and there are 8: it refuses 10 to 16 stages.
TEST_F(PlanFixes, PassOverStagesThatTheScheduleRefuses) {
  std::vector<std::string> flags = {Write(kSmallJob),
                                    "--strategy",
                                    "keep",
                                    "--set",
                                    "model.layers=14",
                                    "--set",
                                    "pipeline.schedule=dualpipev",
                                    "--set",
                                    "pipeline.stages=4"};
  const auto peaks = Json(flags, kExitDone)["peak_bytes"].get<std::vector<int64_t>>();
  const int64_t most = *std::max_element(peaks.begin(), peaks.end());
  flags.insert(flags.end(), {"--set", absl::StrCat("memory.capacity=", most / 100 * 85, "B")});
  const json plan = Json(flags, kExitDoesNotFit);
  EXPECT_EQ(SettingOf(plan, "pipeline.stages"), "pipeline.stages=6");
}

// A job that no setting but its capacity helps, as it is planned here.
TEST_F(PlanFixes, AreLargerDevicesWhereThoseOfTheServerDoNotHaveIt) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::string job = Write(kSmallJob);
  const auto flags_on = [&](const std::string& memory) {
    const std::string server =
        WriteFile("server.yaml",
                  absl::StrCat("name: two cards\ndevice: V100\ndevices: 2\ndevice_memory: ", memory,
                               "\nswitches:\n",
                               "  - {devices: [0, 1], to_host: 12GB/s, from_host: 12GB/s}\n"));
    std::vector<std::string> flags = {job, "--strategy", "keep"};
    for (const std::string& setting :
         {std::string("pipeline.backend=cuda"), std::string("topology.source=file"),
          "topology.name=" + server, std::string("model.hidden=512"),
          std::string("train.optimizer=sgd"), std::string("train.microbatch=1"),
          std::string("pipeline.schedule=1f1b"), std::string("memory.capacity=300MiB")}) {
      flags.insert(flags.end(), {"--set", setting});
    }
    return flags;
  };
  const std::vector<std::string> small = flags_on("300MiB");
  const json larger = Json(small, kExitDoesNotFit)["fixes"].back();
  EXPECT_EQ(larger["set"], json::array());
  EXPECT_GE(larger["device_bytes"], larger["max_peak_bytes"]);
  EXPECT_THAT(Run(small).out,
              ContainsRegex("needs devices of 4[0-9]+ MiB  [(]more than the 300 MiB of these; .* a "
                            "step, 4[0-9]+ MiB on the fullest worker[)]\n"));
  // What there is of it takes a setting.
  const json more = Json(flags_on("600MiB"), kExitDoesNotFit)["fixes"].back();
  EXPECT_EQ(more["device_bytes"], json());
  ASSERT_EQ(more["set"].size(), 1u);
  EXPECT_THAT(more["set"][0].get<std::string>(), StartsWith("memory.capacity=4"));
}

class FixesOfAPlanFile : public PlanFixes {
 protected:
  // The small job with a plan of a larger capacity than it has.
  std::vector<std::string> Tight() {
    const std::string job = Write(kSmallJob);
    const std::string file = directory_ + "/plan.txt";
    EXPECT_EQ(Run({job, "--set", Capacity(job, 80), "--output", file}).code, kExitDone);
    return {job, "--set", Capacity(job, 60), "--set", "memory.plan=" + file};
  }
};

TEST_F(FixesOfAPlanFile, ArePlannedAnew) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const std::vector<std::string> tight = Tight();
  const json plan = Json(tight, kExitDoesNotFit);
  EXPECT_EQ(plan["smallest_fix"]["set"], json::array({"memory.plan=none"}));
  EXPECT_GE(plan["fixes"].size(), 4u) << plan["fixes"];
  for (const json& fix : plan["fixes"]) EXPECT_EQ(fix["set"].back(), "memory.plan=none");
  EXPECT_THAT(Run(tight).out, HasSubstr("smallest change that fits: --set memory.plan=none  "
                                        "(planned anew, not as the plan file says; "));
  if (kSanitized) GTEST_SKIP() << "rest skipped, because it takes minutes under a sanitizer";
  ExpectPlansWithFixes(tight);
}

TEST_F(FixesOfAPlanFile, AreOfAllStrategiesWhereTheJobsOwnDoesNotFitEither) {
  std::vector<std::string> tight = Tight();
  tight.insert(tight.end(), {"--set", "memory.strategy=keep"});
  const json plan = Json(tight, kExitDoesNotFit);
  EXPECT_EQ(plan["smallest_fix"]["set"], json::array({"memory.strategy=auto", "memory.plan=none"}));
  // --strategy has planned it anew already.
  tight.insert(tight.end(), {"--strategy", "keep"});
  EXPECT_EQ(Json(tight, kExitDoesNotFit)["smallest_fix"]["set"], plan["smallest_fix"]["set"]);
}

}  // namespace
}  // namespace siphon
