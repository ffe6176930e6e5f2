#include "planner/published/mpress_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/published/mpress_machines.h"

namespace siphon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

absl::StatusOr<PlannedStep> TakeTenSeconds(const PlanningProblem&) {
  PlannedStep planned;
  planned.simulated.step_time = Nanos(10'000'000'000);
  return planned;
}

MpressRequest RequestOf(std::vector<MpressSection> sections) {
  return {.servers = {.bert = Dgx1(), .gpt = Dgx1(), .a100 = A100Server()},
          .tools = ToolsWithFloors(),
          .strategies = {{"recompute", "", TakeTenSeconds}, {"mpress", "", TakeTenSeconds}},
          .sections = std::move(sections)};
}

std::vector<std::string> ModelsOf(const std::vector<MpressRun>& runs) {
  std::vector<std::string> models;
  for (const MpressRun& run : runs) models.push_back(run.model);
  return models;
}

// Both rows of Table II whose shape is fitted, not searched, so that this takes no time.
TEST(MpressReport, TakesTable4FromFigure8) {
  std::vector<std::string> said;
  const auto report = RunMpressReport(RequestOf({MpressSection::kFigure8}),
                                      [&](absl::string_view doing) { said.emplace_back(doing); });
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->figures, SizeIs(2));
  EXPECT_EQ(report->figures[0].figure.name, "8a");
  EXPECT_THAT(report->figures[0].runs, SizeIs(4 * 2));
  EXPECT_THAT(report->figures[1].runs, SizeIs(5 * 2));
  EXPECT_THAT(said, SizeIs(18));
  EXPECT_EQ(said.front(), "Figure 8a: GPT-5.3B under recompute");
  EXPECT_THAT(ModelsOf(report->table4), ElementsAre("GPT-10.3B", "GPT-20.4B"));
  EXPECT_THAT(report->figure9, IsEmpty());
  const std::string text = MpressReportText(*report);
  EXPECT_THAT(text, HasSubstr("Assumed, for all rows alike"));
  EXPECT_THAT(text, HasSubstr("MPress, Figure 8b"));
  EXPECT_THAT(text, Not(HasSubstr("Table IV")));
}

TEST(MpressReport, SaysUnderFigure7WhyItDiffers) {
  MpressReport report{.sections = {MpressSection::kFigure7},
                      .figures = {{MpressFigures().front(), {}}}};
  EXPECT_THAT(MpressReportText(report), HasSubstr("recomputation fits Bert-4.0B, too"));
  EXPECT_THAT(MpressReportText(report), HasSubstr("Host swap alone does not fit Bert-6.2B"));
  report.sections = {MpressSection::kFigure8};
  report.figures = {{MpressFigures().back(), {}}};
  EXPECT_THAT(MpressReportText(report), Not(HasSubstr("Bert-4.0B, too")));
}

TEST(MpressReport, PlansNothingForTable3) {
  const auto report = RunMpressReport(RequestOf({MpressSection::kTable3}), [](absl::string_view) {
    ADD_FAILURE() << "Table III has the paper's own times";
  });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(MpressReportText(*report), HasSubstr("MPress, Table III"));
}

TEST(MpressReport, NamesEachSectionOnce) {
  std::vector<std::string> names;
  for (const MpressSectionName& section : MpressSectionNames()) names.emplace_back(section.name);
  EXPECT_THAT(names, testing::IsSupersetOf(
                         {"table3", "table4", "figure7", "figure8", "figure9", "section5"}));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

// A billion parameters in 0.22 s; those of GPT-5.3B with its embedding and head are 5.45e9.
TEST(HostAdamTime, IsInProportionToTheParameters) {
  const MpressInstance instance =
      MakeMpressInstance(FindMpressRow("GPT-5.3B").value(), Dgx1(), ToolsWithFloors()).value();
  EXPECT_NEAR(static_cast<double>(instance.problem.host_step.value), 5.45e9 * 0.22, 0.01e9);
}

}  // namespace
}  // namespace siphon
