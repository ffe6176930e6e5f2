#include "launch/run/record/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/output/timeline_testing.h"

namespace siphon {
namespace {

using testing::Contains;
using testing::Pair;

PlanText PlanWith(absl::string_view costs) {
  PlanText plan{.model = "gpt", .schedule = "1f1b", .costs = std::string(costs)};
  return plan;
}

TEST(RunReport, ComparesWorkersOnOneScaleWhereCostsAreKnown) {
  std::vector<WorkerTimeline> measured = SmallStep().workers;
  measured[1].back().end = Nanos(100);
  const TimelinePage page =
      RunReport(PlanWith("measured here"), SmallStep(), {2, measured, {Bytes(2900), Bytes(10)}});
  EXPECT_EQ(page.title, "gpt, 1f1b: step 2");
  EXPECT_THAT(page.facts, Contains(Pair("predicted step", "80 ns")));
  EXPECT_THAT(page.facts, Contains(Pair("measured step", "100 ns")));
  EXPECT_THAT(page.facts, Contains(Pair("deviation", "-20.0 %")));
  EXPECT_THAT(page.facts, Contains(Pair("largest difference", testing::_)));
  ASSERT_EQ(page.tables.size(), 2u);
  EXPECT_EQ(page.tables[0].title, "time of all workers together");
  EXPECT_EQ(page.tables[1].title, "workers");
  EXPECT_EQ(page.tables[1].rows[0][4], "2.83 KiB");
  EXPECT_EQ(page.tables[1].rows[1][4], "10 B");
  EXPECT_EQ(page.tables[1].rows[1][5], "-");  // no limit
  ASSERT_EQ(page.pictures.size(), 1u);
  EXPECT_EQ(page.pictures[0].rows.size(), 4u);
  EXPECT_EQ(page.pictures[0].span, Nanos(100));
  // Worker 0 is busy for 40 of 100 ns, worker 1 for 60.
  EXPECT_THAT(page.facts, Contains(Pair("measured bubble_fraction", "50.0 %")));
}

TEST(RunReport, DoesNotCompareTimesWithUnits) {
  const TimelinePage page =
      RunReport(PlanWith(kUnitCosts), SmallStep(), {2, SmallStep().workers, {}});
  EXPECT_THAT(page.facts, testing::Not(Contains(Pair("deviation", testing::_))));
  ASSERT_EQ(page.pictures.size(), 2u);
  EXPECT_EQ(page.pictures[1].title, "predicted, unit times");
}

}  // namespace
}  // namespace siphon
