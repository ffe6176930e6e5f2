// What MPress's paper shows and what our planners make of it, by the command that users run: a
// minute, in three suites so that they run beside each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"
#include "tests/support/sanitized.h"

namespace siphon {
namespace {

using Json = nlohmann::json;
using testing::UnorderedElementsAre;

Json Published(const std::string& section) {
  const CommandEnd end = RunRegisteredCommand("plan", {"--published", section, "--format", "json"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  return Json::parse(end.out, nullptr, /*allow_exceptions=*/false);
}

std::string NameOf(const Json& run) {
  return run["model"].get<std::string>() + " " + run["strategy"].get<std::string>();
}

// "Bert-4.0B recompute" of all whose outcome is not as published.
std::vector<std::string> OtherOutcomes(const Json& figure, int& compared) {
  std::vector<std::string> others;
  for (const Json& run : figure["runs"]) {
    if (run["published_fits"].is_null()) continue;
    ++compared;
    if (run["fits"] != run["published_fits"]) others.push_back(NameOf(run));
  }
  return others;
}

// On the same pipeline; baselines of data parallelism have another.
void ExpectAutoIsFastest(const Json& runs) {
  for (const Json& best : runs) {
    if (best["strategy"] != "auto") continue;
    EXPECT_TRUE(best["fits"].get<bool>()) << NameOf(best);
    for (const Json& other : runs) {
      const bool of_other_kind = absl::StartsWith(other["strategy"].get<std::string>(), "zero_");
      if (other["model"] != best["model"] || of_other_kind || !other["fits"].get<bool>()) continue;
      EXPECT_LE(best["step_seconds"], other["step_seconds"]) << NameOf(other);
    }
  }
}

TEST(PlanPublishedFigures, HaveThePapersOutcomesButForTwo) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  int compared = 0;
  const Json seventh = Published("figure7")["figures"];
  ASSERT_EQ(seventh.size(), 1U);
  // Both are told in its notes.
  EXPECT_THAT(OtherOutcomes(seventh[0], compared),
              UnorderedElementsAre("Bert-4.0B recompute", "Bert-6.2B host_swap"));
  const Json eighth = Published("figure8")["figures"];
  ASSERT_EQ(eighth.size(), 2U);
  for (const Json& figure : eighth) {
    EXPECT_THAT(OtherOutcomes(figure, compared), UnorderedElementsAre());
  }
  EXPECT_EQ(compared, 25 + 20 + 21);
  for (const Json& figure : {seventh[0], eighth[0], eighth[1]}) {
    ExpectAutoIsFastest(figure["runs"]);
  }
}

TEST(PlanPublishedTable4, FitsAllModelsAndAutoIsNoSlower) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const Json rows = Published("table4")["table_4"];
  ASSERT_EQ(rows.size(), 8U);
  for (const Json& row : rows) {
    EXPECT_TRUE(row["fits"].get<bool>()) << NameOf(row);
    EXPECT_GT(row["published"]["overflow_bytes"], 0) << NameOf(row);
  }
  ExpectAutoIsFastest(rows);
}

// GPT-3 175B on Grace Hoppers: a quarter is computed again, and at the chips' rate the link to
// their own memory hides the rest.
TEST(PlanPublishedSection5, HasThePapersShareOfRecomputation) {
  if (kSanitized) GTEST_SKIP() << "skipped, because it takes minutes under a sanitizer";
  const Json section = Published("section5")["section_5"];
  EXPECT_NEAR(section["recompute_share"].get<double>(), 0.25, 0.001);
  ASSERT_EQ(section["steps"].size(), 2U);
  for (const Json& step : section["steps"]) {
    for (const Json& run : step["runs"]) {
      if (run["strategy"] == "keep") {
        EXPECT_FALSE(run["fits"].get<bool>());
      }
      if (run["strategy"] == "auto") {
        EXPECT_TRUE(run["fits"].get<bool>());
      }
    }
    ExpectAutoIsFastest(step["runs"]);
  }
}

}  // namespace
}  // namespace siphon
