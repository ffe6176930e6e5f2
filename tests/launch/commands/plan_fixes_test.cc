#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launch/commands/plan_fixture.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
      EXPECT_EQ(Json(fixed, kExitDone)["step_seconds"], fix["step_seconds"]) << fix;
    }
  }
};

// 1.5 % less does not fit.
TEST_F(PlanFixes, NameTheLeastCapacity) {
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

// Whether a change fits is looked for without the best plan, but that is what is shown of it.
TEST_F(PlanFixes, ArePlannedAsTheJobWithThem) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  ExpectPlansWithFixes({Write(kServerJob), "--set", "model.layers=4", "--set", "pipeline.stages=2",
                        "--set", "train.global_batch=8", "--set", "memory.capacity=3800MiB"});
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

}  // namespace
}  // namespace siphon
