#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "launch/commands/plan_published.h"
#include "launch/process/exit_codes.h"
#include "tests/launch/commands/run_command.h"

namespace siphon {
namespace {

using testing::Contains;
using testing::HasSubstr;

// The six choices of Table III; figures are tested in tests/planner/published, they take seconds.
TEST(PlanPublished, NeedsNoJob) {
  const CommandEnd end = RunRegisteredCommand("plan", {"--published", "table3"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  EXPECT_EQ(end.err, "");
  EXPECT_THAT(end.out, HasSubstr("GPT  t5       384    50          8         24         0  "
                                 "d2d_swap   d2d_swap"));
}

TEST(PlanPublished, IsJsonToo) {
  const CommandEnd end =
      RunRegisteredCommand("plan", {"--published", "table3", "--format", "json"});
  EXPECT_EQ(end.code, kExitDone) << end.err;
  const auto json = nlohmann::json::parse(end.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_EQ(json["table_3"].size(), 6U);
  for (const auto& row : json["table_3"]) EXPECT_EQ(row["choice"], row["published"]) << row;
}

TEST(PlanPublished, ListsItsSections) {
  EXPECT_THAT(PublishedSections(), Contains("all"));
  EXPECT_THAT(PublishedSections(), Contains("figure9"));
  const auto unknown =
      PublishedPlans("table5", OutputFormat::kText, [](absl::string_view) { FAIL(); });
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("no section 'table5'; known: all"));
}

}  // namespace
}  // namespace siphon
